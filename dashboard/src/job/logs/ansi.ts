/**
 * The colours and styles that a program writes for terminals (SGR, ECMA-48 section 8.3.117), as spans of plain text.
 *
 * Every other control sequence is removed: a line of a log can move no cursor, set no title and hide no text.
 */

/** The colours of a theme: 0 to 7 black, red, green, yellow, blue, magenta, cyan, white; 8 to 15 the same, bright. */
export type ThemeColor = number;

export interface Style {
  foreground: ThemeColor | null;
  background: ThemeColor | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
  strike: boolean;
}

/** A part of a text that has a style. The text between spans has none. */
export interface Span {
  start: number;
  end: number;
  style: Style;
}

export interface StyledText {
  text: string;
  spans: readonly Span[];
  /** The style at the end, which the next line of the same source begins with. */
  style: Style;
}

export const PLAIN: Style = {
  foreground: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strike: false,
};

/**
 * In order: control sequences, of which the final byte `m` is SGR; strings to the terminal, such as a title, with
 * their end; other escapes; single control characters except the tab.
 */
const CONTROL = new RegExp(
  [
    "(?:\\x1b\\[|\\x9b)([0-?]*)[ -/]*([@-~])",
    "\\x1b[\\]PX^_][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)",
    "\\x1b[ -/]*[0-~]?",
    "[\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f]",
  ].join("|"),
  "g",
);
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters
const HAS_CONTROL = /[\x00-\x08\x0a-\x1f\x7f-\x9f]/;

/** Parse a line that begins with the style `before`. */
export function parseAnsi(raw: string, before: Style = PLAIN): StyledText {
  if (!HAS_CONTROL.test(raw)) return { text: raw, spans: spansOf(raw.length, before), style: before };
  const spans: Span[] = [];
  let text = "";
  let style = before;
  let from = 0;
  let start = 0;
  const close = () => {
    if (text.length > start && style !== PLAIN) spans.push({ start, end: text.length, style });
    start = text.length;
  };
  for (const match of raw.matchAll(CONTROL)) {
    text += raw.slice(from, match.index);
    from = match.index + match[0].length;
    if (match[2] !== "m") continue;
    const next = withParameters(style, match[1] ?? "");
    if (isSame(next, style)) continue;
    close();
    style = isSame(next, PLAIN) ? PLAIN : next;
  }
  text += raw.slice(from);
  close();
  return { text, spans, style };
}

function spansOf(length: number, style: Style): Span[] {
  return style === PLAIN || length === 0 ? [] : [{ start: 0, end: length, style }];
}

function isSame(left: Style, right: Style): boolean {
  return (Object.keys(PLAIN) as (keyof Style)[]).every((key) => left[key] === right[key]);
}

const ON: Readonly<Record<number, Partial<Style>>> = {
  0: PLAIN,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { foreground: null },
  49: { background: null },
};

function withParameters(style: Style, parameters: string): Style {
  const codes = parameters.split(";");
  let result = style;
  for (let index = 0; index < codes.length; index += 1) {
    // `38:5:1` is one parameter with parts, and `38;5;1` is three parameters.
    const parts = (codes[index] ?? "").split(":").map(Number);
    const code = parts[0] ?? 0;
    if (code === 38 || code === 48) {
      const isWhole = parts.length > 1;
      const [color, used] = extendedColor(isWhole ? parts.slice(1) : codes.slice(index + 1).map(Number), isWhole);
      if (!isWhole) index += used;
      if (color !== null) result = { ...result, [code === 38 ? "foreground" : "background"]: color };
    } else {
      result = { ...result, ...(code === 4 && parts[1] === 0 ? ON[24] : (ON[code] ?? basicColor(code))) };
    }
  }
  return result;
}

function basicColor(code: number): Partial<Style> {
  if (code >= 30 && code <= 37) return { foreground: code - 30 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 90 && code <= 97) return { foreground: code - 82 };
  if (code >= 100 && code <= 107) return { background: code - 92 };
  return {};
}

/** Return the colour after 38 or 48, null if it is not valid, and the number of parameters that it takes. */
function extendedColor(parameters: readonly number[], isWhole: boolean): [ThemeColor | null, number] {
  const [mode, ...rest] = parameters;
  if (mode === 5) return [indexedColor(rest[0] ?? -1), 2];
  if (mode !== 2) return [null, 1];
  // With colons, an id of a colour space may stand before the three values.
  const [red = 0, green = 0, blue = 0] = isWhole && rest.length > 3 ? rest.slice(1) : rest;
  return [nearest(red, green, blue), 4];
}

function indexedColor(index: number): ThemeColor | null {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return index;
  if (index >= 232) return nearest(...grey(8 + (index - 232) * 10));
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function grey(value: number): [number, number, number] {
  return [value, value, value];
}

/** The sixteen colours of xterm. */
const XTERM: readonly (readonly [number, number, number])[] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
];

/**
 * Return the nearest of the sixteen colours. An exact colour of the program may be unreadable on the page, in light or
 * in dark mode; the colours of the theme are readable in both.
 */
function nearest(red: number, green: number, blue: number): ThemeColor {
  const distances = XTERM.map(([r, g, b]) => (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2);
  return distances.indexOf(Math.min(...distances));
}
