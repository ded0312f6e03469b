import { describe, expect, test } from "vitest";
import { PLAIN } from "../src/job/logs/ansi";
import { LineRing } from "../src/job/logs/ring";
import { type Matcher, Matches, nextMatch, positionOf, rangesIn, searchFor } from "../src/job/logs/search";
import { classesOf, segmentsOf } from "../src/job/logs/segments";

const line = (text: string) => ({ source: "", at: null, text, spans: [] });

function matcherOf(text: string, isRegex = false): Matcher {
  const { matcher } = searchFor(text, isRegex);
  if (matcher === null) throw new Error("the text is not searched for");
  return matcher;
}

describe("a search", () => {
  test.each<[string, boolean, string, [number, number][]]>([
    [
      "error",
      false,
      "Error: an ERROR",
      [
        [0, 5],
        [10, 15],
      ],
    ],
    ["a.b", false, "a.b axb", [[0, 3]]],
    [
      "a.b",
      true,
      "a.b axb",
      [
        [0, 3],
        [4, 7],
      ],
    ],
    ["[x]", false, "[x] x", [[0, 3]]],
    ["x*", true, "abc", []],
    ["loss=\\d+", true, "loss=12 loss=x", [[0, 7]]],
  ])("for %j (regular expression: %s) in %j", (text, isRegex, within, ranges) => {
    expect(rangesIn(within, matcherOf(text, isRegex))).toEqual(ranges.map(([start, end]) => ({ start, end })));
  });

  test("finds nothing without a text", () => {
    expect(searchFor("", true)).toEqual({ matcher: null, error: null });
  });

  test("says why a text is no regular expression", () => {
    const { matcher, error } = searchFor("(", true);
    expect(matcher).toBeNull();
    expect(error).toMatch(/Unterminated group/);
  });
});

test("a text is found at the end of a long line; a regular expression searches its beginning", () => {
  const ring = new LineRing();
  ring.append(line(`${"long ".repeat(200_000)}needle`));
  const found = (isRegex: boolean) => {
    const matches = new Matches(matcherOf("needle", isRegex));
    matches.scan(ring);
    return matches.numbers;
  };
  expect(found(false)).toEqual([0]);
  expect(found(true)).toEqual([]);
});

describe("matching lines", () => {
  test("are highlighted from their beginning after they were found", () => {
    const ring = new LineRing();
    ring.append(line("error, and an error"));
    const matcher = matcherOf("error");
    new Matches(matcher).scan(ring);
    expect(rangesIn("error, and an error", matcher)).toEqual([
      { start: 0, end: 5 },
      { start: 14, end: 19 },
    ]);
  });

  test("are found in slices, also those that arrive later, and are dropped with their lines", () => {
    const ring = new LineRing(4);
    const matches = new Matches(matcherOf("yes"));
    for (const text of ["yes 0", "no", "yes 2", "no"]) ring.append(line(text));
    expect(matches.scan(ring, 3)).toBe(true);
    expect(matches.numbers).toEqual([0, 2]);
    expect(matches.scan(ring, 3)).toBe(false);
    ring.append(line("yes 4"));
    expect(matches.scan(ring, 3)).toBe(false);
    expect(matches.numbers).toEqual([2, 4]);
  });

  test("that are dropped before they are searched do not count", () => {
    const ring = new LineRing(2);
    for (const text of ["yes", "yes", "yes", "yes", "yes"]) ring.append(line(text));
    const matches = new Matches(matcherOf("yes"));
    matches.scan(ring);
    expect(matches.numbers).toEqual([3, 4]);
  });

  test.each<[number[], number, 1 | -1, number | null]>([
    [[], 0, 1, null],
    [[0, 5, 9], -1, 1, 0],
    [[3, 5, 9], 3, 1, 5],
    [[3, 5, 9], 9, 1, 3],
    [[3, 5, 9], 3, -1, 9],
    [[3, 5, 9], 9, -1, 5],
    [[3, 5, 9], 4, 1, 5],
    [[3, 5, 9], 4, -1, 3],
    [[3, 5, 9], 1, -1, 9],
    [[3, 5, 9], 10, 1, 3],
  ])("in %j after %j, a step of %i leads to %j", (numbers, current, step, next) => {
    expect(nextMatch(numbers, current, step)).toBe(next);
  });

  test.each<[number | null, number | null]>([
    [null, null],
    [3, 1],
    [9, 3],
    [4, null],
  ])("%j is the match %j", (current, position) => {
    expect(positionOf([3, 5, 9], current)).toBe(position);
  });
});

describe("segments", () => {
  const red = { ...PLAIN, foreground: 1 };

  test.each<[string, [number, number][], [number, number][], number | undefined, string]>([
    ["", [], [], undefined, ""],
    ["plain", [], [], undefined, "plain"],
    ["abcdef", [[1, 3]], [], undefined, "a|bc:style|def"],
    ["abcdef", [], [[2, 4]], undefined, "ab|cd:match|ef"],
    ["abcdef", [[0, 4]], [[2, 6]], undefined, "ab:style|cd:style:match|ef:match"],
    [
      "abcdef",
      [
        [0, 2],
        [2, 4],
      ],
      [
        [0, 1],
        [1, 2],
      ],
      undefined,
      "a:style:match|b:style:match|cd:style|ef",
    ],
    ["abcdef", [[1, 6]], [[0, 5]], 3, "a:match|bc:style:match"],
  ])("of %j with the styles %j and the matches %j", (text, styles, matches, length, expected) => {
    const segments = segmentsOf(
      text,
      styles.map(([start, end]) => ({ start, end, style: red })),
      matches.map(([start, end]) => ({ start, end })),
      length,
    );
    const written = segments.map(
      (each) => `${each.text}${each.style === null ? "" : ":style"}${each.isMatch ? ":match" : ""}`,
    );
    expect(written.join("|")).toBe(expected);
  });

  test.each([
    [{ foreground: 1 }, "ansi-1"],
    [{ foreground: 9, bold: true, underline: true }, "ansi-1 ansi-bold ansi-underline"],
    [{ foreground: 1, background: 2 }, "ansi-on-2"],
    [{ inverse: true }, "ansi-on-7"],
    [{ foreground: 1, inverse: true }, "ansi-on-1"],
    [{ dim: true, italic: true, strike: true }, "ansi-dim ansi-italic ansi-strike"],
  ])("the style %j has the classes %j", (style, classes) => {
    expect(classesOf({ ...PLAIN, ...style })).toBe(classes);
  });
});
