import { expect, test } from "vitest";
import { fitting, moved, placeOf, type Range, ticksOf, timeAt, within, zoomed } from "../../src/job/timeline/axis";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 0, 31, 12);

test.each<[name: string, range: Range, width: number, zone: number, labels: string[]]>([
  [
    "seconds",
    { start: NOON, end: NOON + 20_000 },
    500,
    0,
    ["12:00:00", "12:00:05", "12:00:10", "12:00:15", "12:00:20"],
  ],
  ["minutes", { start: NOON + 1, end: NOON + 40 * MINUTE }, 500, 0, ["12:10", "12:20", "12:30", "12:40"]],
  ["a new day", { start: NOON + 11 * HOUR, end: NOON + 14 * HOUR }, 400, 0, ["23:00", "1 Feb", "01:00", "02:00"]],
  ["days", { start: NOON, end: NOON + 4 * DAY }, 400, 0, ["1 Feb", "2 Feb", "3 Feb", "4 Feb"]],
  ["another zone", { start: NOON, end: NOON + 2 * HOUR }, 300, 330, ["18:00", "19:00"]],
  ["no room", { start: NOON, end: NOON + HOUR }, 0, 0, ["12:00", "13:00"]],
])("chooses ticks: %s", (_, range, width, zone, labels) => {
  expect(ticksOf(range, width, zone).map((tick) => tick.label)).toEqual(labels);
});

test("ticks of another zone are at its round times", () => {
  const range = { start: NOON, end: NOON + 2 * HOUR };
  expect(ticksOf(range, 300, 330).map((tick) => tick.at)).toEqual([NOON + 30 * MINUTE, NOON + 90 * MINUTE]);
});

test("ticks have room for their labels", () => {
  for (const length of [1, 7, 59, 61, 3601, 90_000, 1_000_000, 40_000_000, 400_000_000]) {
    const range = { start: NOON, end: NOON + length * 1000 };
    const places = ticksOf(range, 900, 0).map((tick) => placeOf(tick.at, range, 900));
    expect(places.every((place, index) => index === 0 || place - (places[index - 1] ?? 0) >= 88)).toBe(true);
  }
});

test.each<[name: string, times: number[], now: number | null, range: Range]>([
  ["an ended job", [300, 1300, 2300], null, { start: 300, end: 2340 }],
  ["a live job", [1000, 1200], 11_000, { start: 1000, end: 11_200 }],
  ["a moment", [5000], null, { start: 5000, end: 6020 }],
  ["a clock behind that of the gateway", [5000], 4000, { start: 5000, end: 6020 }],
])("fits %s", (_, times, now, range) => {
  expect(fitting(times, now)).toEqual(range);
});

const FULL = { start: 0, end: 100_000 };

test.each<[name: string, actual: Range, expected: Range]>([
  ["zooms into the middle", zoomed(FULL, 0.5, FULL), { start: 25_000, end: 75_000 }],
  ["zooms out up to the whole time", zoomed({ start: 0, end: 60_000 }, 2, FULL), FULL],
  ["zooms to no less than a second", zoomed({ start: 500, end: 1500 }, 0.1, FULL), { start: 950, end: 1950 }],
  ["moves", moved({ start: 10_000, end: 20_000 }, 0.5, FULL), { start: 15_000, end: 25_000 }],
  ["stops at the end", moved({ start: 85_000, end: 95_000 }, 1, FULL), { start: 90_000, end: 100_000 }],
  ["stops at the beginning", moved({ start: 5000, end: 15_000 }, -1, FULL), { start: 0, end: 10_000 }],
  ["shortens what is longer than the limit", within({ start: -5, end: 200_000 }, FULL), FULL],
])("%s", (_, actual, expected) => {
  expect(actual).toEqual(expected);
});

test("a place and its time correspond", () => {
  const range = { start: NOON, end: NOON + HOUR };
  expect(placeOf(NOON + 15 * MINUTE, range, 400)).toBe(100);
  expect(timeAt(100, range, 400)).toBe(NOON + 15 * MINUTE);
});
