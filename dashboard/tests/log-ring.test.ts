import { describe, expect, test } from "vitest";
import { Continuation, linesAfter } from "../src/job/logs/continuation";
import { LineRing } from "../src/job/logs/ring";

const line = (text: string) => ({ source: "", at: null, text, spans: [] });

function ringOf(texts: readonly string[], mostLines?: number, mostCharacters?: number): LineRing {
  const ring = new LineRing(mostLines, mostCharacters);
  for (const text of texts) ring.append(line(text));
  return ring;
}

describe("a ring", () => {
  test.each<[string, string[], number, number, number, string[]]>([
    ["is empty at first", [], 3, 100, 0, []],
    ["keeps lines up to its size", ["a", "b", "c"], 3, 100, 0, ["a", "b", "c"]],
    ["drops the oldest line", ["a", "b", "c", "d", "e"], 3, 100, 2, ["c", "d", "e"]],
    ["drops lines that are too long together", ["aaaa", "bbbb", "cccc"], 10, 8, 1, ["bbbb", "cccc"]],
    [
      "keeps the last line, whatever its length",
      ["a", "a line that is too long"],
      10,
      8,
      1,
      ["a line that is too long"],
    ],
    ["counts no characters of dropped lines", ["aaaa", "bb", "cc", "dd", "ee"], 10, 8, 1, ["bb", "cc", "dd", "ee"]],
  ])("%s", (_, texts, mostLines, mostCharacters, first, kept) => {
    const ring = ringOf(texts, mostLines, mostCharacters);
    expect(ring.first).toBe(first);
    expect(ring.end).toBe(texts.length);
    expect(ring.last(100).map((each) => each.text)).toEqual(kept);
  });

  test("keeps the numbers of its lines", () => {
    const ring = ringOf(["a", "b", "c", "d"], 2);
    expect([0, 1, 2, 3, 4].map((number) => ring.get(number)?.text)).toEqual([
      undefined,
      undefined,
      "c",
      "d",
      undefined,
    ]);
  });
});

describe("a log that is read again", () => {
  const at = (nanoseconds: number) => `2026-01-02T03:04:05.${String(nanoseconds).padStart(9, "0")}Z`;

  function accepted(before: [string, number][], after: [string, number][]): [string, number][] {
    const continuation = new Continuation();
    for (const [source, time] of before) continuation.accepts({ source, at: at(time) });
    continuation.restart();
    return after.filter(([source, time]) => continuation.accepts({ source, at: at(time) }));
  }

  test.each<[string, [string, number][], [string, number][], [string, number][]]>([
    ["begins without known lines", [], [["a", 1]], [["a", 1]]],
    [
      "repeats lines",
      [
        ["a", 1],
        ["a", 2],
      ],
      [
        ["a", 1],
        ["a", 2],
        ["a", 3],
      ],
      [["a", 3]],
    ],
    [
      "repeats only the latest line",
      [
        ["a", 1],
        ["a", 2],
      ],
      [
        ["a", 2],
        ["a", 3],
      ],
      [["a", 3]],
    ],
    [
      "has missed lines",
      [["a", 1]],
      [
        ["a", 5],
        ["a", 6],
      ],
      [
        ["a", 5],
        ["a", 6],
      ],
    ],
    [
      "has two lines of one time, of which one is known",
      [["a", 1]],
      [
        ["a", 1],
        ["a", 1],
      ],
      [["a", 1]],
    ],
    [
      "has two known lines of one time",
      [
        ["a", 1],
        ["a", 1],
      ],
      [
        ["a", 1],
        ["a", 1],
        ["a", 2],
      ],
      [["a", 2]],
    ],
    [
      "has several sources",
      [
        ["a", 3],
        ["b", 1],
      ],
      [
        ["a", 2],
        ["b", 2],
        ["c", 1],
        ["a", 4],
      ],
      [
        ["b", 2],
        ["c", 1],
        ["a", 4],
      ],
    ],
    [
      "has older lines after newer ones",
      [["a", 2]],
      [
        ["a", 3],
        ["a", 2],
      ],
      [
        ["a", 3],
        ["a", 2],
      ],
    ],
  ])("%s", (_, before, after, expected) => {
    expect(accepted(before, after)).toEqual(expected);
  });

  test("a line without a time is new", () => {
    const continuation = new Continuation();
    expect([1, 2].map(() => continuation.accepts({ source: "", at: null }))).toEqual([true, true]);
  });
});

test.each<[string[], string[], string[] | null]>([
  [[], ["a", "b"], ["a", "b"]],
  [["a", "b"], ["a", "b", "c"], ["c"]],
  [["a", "b"], ["a", "b"], []],
  [["x", "a"], ["a", "c"], ["c"]],
  [["a", "b", "a", "b"], ["a", "b", "a", "b", "c"], ["c"]],
  [["b", "b"], ["a", "b", "b", "b", "c"], ["c"]],
  [["x", "y"], ["a", "b"], null],
  [["x"], [], null],
])("after %j, the stored lines %j add %j", (known, stored, next) => {
  expect(linesAfter(known, stored)).toEqual(next);
});

test("a ring knows the width of the longest source", () => {
  const ring = new LineRing(1);
  for (const source of ["a[0]", "worker[12]", "b[1]"]) ring.append({ source, at: null, text: "", spans: [] });
  expect(ring.widestSource).toBe(10);
});
