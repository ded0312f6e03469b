import type { Span, Style, ThemeColor } from "./ansi";
import type { Range } from "./search";

/** A part of a line that is rendered as one element. */
export interface Segment {
  start: number;
  text: string;
  style: Style | null;
  isMatch: boolean;
}

/** Divide the first `length` characters of a line where its style changes, or where a match begins or ends. */
export function segmentsOf(
  text: string,
  spans: readonly Span[],
  matches: readonly Range[],
  length: number = text.length,
): Segment[] {
  const end = Math.min(length, text.length);
  if (spans.length === 0 && matches.length === 0) {
    return end === 0 ? [] : [{ start: 0, text: text.slice(0, end), style: null, isMatch: false }];
  }
  const edges = new Set([0, end]);
  for (const part of [...spans, ...matches]) for (const edge of [part.start, part.end]) if (edge < end) edges.add(edge);
  const sorted = [...edges].sort((a, b) => a - b);
  const segments: Segment[] = [];
  let span = 0;
  let match = 0;
  for (const [index, start] of sorted.entries()) {
    const stop = sorted[index + 1];
    if (stop === undefined) break;
    while ((spans[span]?.end ?? Number.POSITIVE_INFINITY) <= start) span += 1;
    while ((matches[match]?.end ?? Number.POSITIVE_INFINITY) <= start) match += 1;
    const style = contains(spans[span], start) ? (spans[span]?.style ?? null) : null;
    segments.push({ start, text: text.slice(start, stop), style, isMatch: contains(matches[match], start) });
  }
  return segments;
}

function contains(range: Range | undefined, position: number): boolean {
  return range !== undefined && range.start <= position && position < range.end;
}

/** Return the classes of a style. They are fixed words: no text of a log becomes a part of them. */
export function classesOf(style: Style): string {
  const foreground = hueOf(style.foreground);
  const background = hueOf(style.background);
  const names = [
    // The colour of a text on a coloured background may be unreadable, so it stays that of the page.
    foreground !== null && background === null && !style.inverse && `ansi-${foreground}`,
    background !== null && `ansi-on-${background}`,
    style.inverse && background === null && `ansi-on-${foreground ?? 7}`,
    style.bold && "ansi-bold",
    style.dim && "ansi-dim",
    style.italic && "ansi-italic",
    style.underline && "ansi-underline",
    style.strike && "ansi-strike",
  ];
  return names.filter((name) => name !== false).join(" ");
}

/** Return the class of a colour. A bright one is shown as the other one of its hue, which is readable in both modes. */
function hueOf(color: ThemeColor | null): number | null {
  return color === null ? null : color % 8;
}
