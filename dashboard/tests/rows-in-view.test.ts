import { describe, expect, it } from "vitest";
import { movedPlace, movedTo, rowsInView, topToShow, widened } from "../src/ui/rows-in-view";

const same = (key: string) => key;

describe("rowsInView", () => {
  it.each([
    ["at the top", 0, 100, { start: 0, end: 5 }],
    ["in the middle", 400, 100, { start: 20, end: 25 }],
    ["between rows", 410, 100, { start: 20, end: 26 }],
    ["at the end", 1900, 100, { start: 95, end: 100 }],
    ["beyond the end, if the list became shorter", 9000, 100, { start: 95, end: 100 }],
    ["in a list that is shorter than the view", 0, 5000, { start: 0, end: 100 }],
    ["before the view is measured", 0, 0, { start: 0, end: 0 }],
  ])("%s", (_, top, height, expected) => {
    expect(rowsInView({ top, height }, 20, 100)).toEqual(expected);
  });

  it("is empty without rows", () => {
    expect(rowsInView({ top: 40, height: 100 }, 20, 0)).toEqual({ start: 0, end: 0 });
  });
});

it("rows before and after are drawn too, as far as there are any", () => {
  expect(widened({ start: 5, end: 10 }, 100, 12)).toEqual({ start: 0, end: 22 });
  expect(widened({ start: 90, end: 95 }, 100, 12)).toEqual({ start: 78, end: 100 });
});

it.each([
  ["stays if the row is in view", 12, 200],
  ["goes up to a row above", 3, 60],
  ["goes down to a row below, so that it is the last", 30, 520],
  ["goes down to a row that is in view in part", 15, 220],
])("the scroll position %s", (_, index, expected) => {
  expect(topToShow(index, { top: 200, height: 100 }, 20)).toBe(expected);
});

describe("movedTo", () => {
  const before = [..."abcdef"];

  it.each([
    ["stays if nothing changed above", "abcdefg", 3, 3],
    ["moves down when rows arrive above", "xyzabcdef", 2, 5],
    ["moves up when rows above are removed", "bdef", 3, 1],
    ["is the next row if it was removed", "abdef", 2, 2],
    ["is the next row that is left", "abf", 2, 2],
    ["is nowhere if no next row is left", "ab", 2, null],
  ])("a row %s", (_, after, index, expected) => {
    expect(movedTo(before, [...after], index, same)).toBe(expected);
  });

  it("looks at rows near the former place, not at all of them", () => {
    const rows = Array.from({ length: 100_000 }, (_, index) => `row-${index}`);
    const arrived = Array.from({ length: 300 }, (_, index) => `new-${index}`);
    let keys = 0;
    const counting = (key: string) => {
      keys += 1;
      return key;
    };
    expect(movedTo(rows, [...arrived, ...rows], 50_000, counting)).toBe(50_300);
    expect(keys).toBeLessThan(700);
  });
});

describe("the current row", () => {
  const before = [..."abcdef"];

  it.each([
    ["is followed when rows arrive above it", "xyabcdef", { key: "c", index: 4 }],
    ["keeps its place when rows arrive below it", "abcxydef", { key: "c", index: 2 }],
    ["leaves its place to the next row when it is removed", "xabdef", { key: "c", index: 3 }],
    ["is none when the list is another one", "xyz", null],
  ])("%s", (_, after, expected) => {
    expect(movedPlace({ key: "c", index: 2 }, before, [...after], same)).toEqual(expected);
  });
});
