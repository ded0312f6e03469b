import { expect, test } from "vitest";
import type { Transport } from "../src/api/transport";
import { indexAt, LogWindow, MOST_LINES, RANGE } from "../src/job/logs/whole/log-window";
import { type OpenLog, openLog, type PlacedLine, type Wanted } from "../src/job/logs/whole/requests";
import { MOST_MATCHES, patternOf, WholeSearch } from "../src/job/logs/whole/whole-search";

/** The bytes of each line, with its line break. */
const WIDTH = 32;
const LINES = 200_000;
const SIZE = LINES * WIDTH;

const lineAt = (index: number): PlacedLine => ({
  ...{ source: "", at: null, text: `line ${index}`, spans: [] },
  ...{ offset: index * WIDTH, number: index + 1, isMissing: false },
});

/** A gateway with a long log: it returns the lines that begin in a range. `size` is what is kept of it. */
function gateway(size = SIZE): { open: (wanted: Wanted) => Promise<OpenLog>; requests: Wanted[] } {
  const requests: Wanted[] = [];
  const open = (wanted: Wanted) => {
    requests.push(wanted);
    const begin = wanted.sinceTime === undefined ? (wanted.offset ?? 0) : 1000 * WIDTH;
    const end = wanted.limit === undefined ? SIZE : Math.min(SIZE, begin + wanted.limit);
    const first = Math.ceil(begin / WIDTH);
    const last = Math.ceil(end / WIDTH);
    return Promise.resolve({
      size,
      lines: (async function* () {
        for (let index = first; index < last; index += 1) yield lineAt(index);
      })(),
    });
  };
  return { open, requests };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

function isWithoutSeam(lines: readonly PlacedLine[]): boolean {
  return lines.every((line, index) => line.offset === (lines[0]?.offset ?? 0) + index * WIDTH);
}

test("a jump loads the lines around a place, and only those", async () => {
  const { open, requests } = gateway();
  const window = new LogWindow(open);
  window.jump(20_000 * WIDTH + 5);
  await settled();
  const { lines, start, end, size, target } = window.state.get();
  expect(requests).toEqual([{ offset: 20_000 * WIDTH + 5 - RANGE / 2, limit: RANGE }]);
  expect(lines[indexAt(lines, target?.offset ?? 0)]?.text).toBe("line 20000");
  expect([end - start, size, isWithoutSeam(lines)]).toEqual([RANGE, SIZE, true]);
  window.jump(20_001 * WIDTH);
  await settled();
  expect(requests).toHaveLength(1);
  expect(window.state.get().target).toEqual({ offset: 20_001 * WIDTH });
});

test("it grows at both ends, drops the lines at the other end, and says by how many lines they move", async () => {
  const { open } = gateway();
  const window = new LogWindow(open);
  window.jump(30_000 * WIDTH);
  await settled();
  for (const isDown of [true, true, true, false, false, false, false]) {
    for (let step = 0; step < 2; step += 1) {
      const before = window.state.get().lines;
      if (isDown) window.extendDown();
      else window.extendUp();
      await settled();
      const { lines, shift } = window.state.get();
      const same = isDown ? before.at(-1) : before[0];
      if (same === undefined) throw new Error("there are no lines");
      expect(isWithoutSeam(lines)).toBe(true);
      expect(lines.length).toBeLessThanOrEqual(MOST_LINES);
      expect(indexAt(lines, same.offset) - indexAt(before, same.offset)).toBe(shift);
    }
  }
});

test("it ends at the first and the last line, also of a log that still grows", async () => {
  const { open } = gateway(SIZE - 10 * WIDTH);
  const window = new LogWindow(open);
  window.jump(0);
  await settled();
  window.extendUp();
  await settled();
  expect(window.state.get().lines[0]?.text).toBe("line 0");
  window.jump(SIZE - WIDTH);
  await settled();
  expect(window.state.get().lines.at(-1)?.text).toBe(`line ${LINES - 1}`);
  const known = window.state.get().lines;
  window.extendDown();
  await settled();
  expect(window.state.get().lines).toEqual(known);
});

test("a time is the place of its first line", async () => {
  const { open, requests } = gateway();
  const window = new LogWindow(open);
  const found: number[] = [];
  window.jumpToTime("2026-01-31T12:00:00Z", (offset) => found.push(offset));
  await settled();
  expect([found, requests]).toEqual([[1000 * WIDTH], [{ sinceTime: "2026-01-31T12:00:00Z" }]]);
});

test("an error is kept until the next try", async () => {
  let isBroken = true;
  const { open } = gateway();
  const window = new LogWindow((wanted) => (isBroken ? Promise.reject(new Error("away")) : open(wanted)));
  window.jump(0);
  await settled();
  expect(window.state.get().error?.message).toBe("away");
  isBroken = false;
  window.jump(0);
  await settled();
  expect([window.state.get().error, window.state.get().lines.length > 0]).toEqual([null, true]);
});

test("a search keeps the places of matches, up to a limit", async () => {
  const { open, requests } = gateway();
  const search = new WholeSearch(open);
  search.start("a.b", false);
  await settled();
  await settled();
  const { offsets, isSearching, isCut } = search.state.get();
  expect(requests).toEqual([{ search: "(?i)a\\.b" }]);
  expect([offsets?.length, offsets?.[2], isSearching, isCut]).toEqual([MOST_MATCHES, 2 * WIDTH, false, true]);
  search.start("", false);
  expect(search.state.get().offsets).toBeNull();
});

test.each([
  ["a+b", false, "(?i)a\\+b"],
  ["a+b", true, "(?i)a+b"],
])("the pattern of %s", (text, isRegex, pattern) => {
  expect(patternOf(text, isRegex)).toBe(pattern);
});

test("lines are read from JSON, and others are ignored", async () => {
  const body = [
    '{"offset": 0, "number": 0, "at": "2026-01-31T12:00:00Z", "line": "\\u001b[1mone"}',
    '{"offset": 9, "number": 1, "at": null, "line": "[jobgate] lost", "missing": "rotated"}',
    '{"line": "without a place"}',
    "no JSON",
    "",
  ].join("\n");
  const paths: string[] = [];
  const get = (path: string) => {
    paths.push(path);
    return Promise.resolve(new Response(body, { headers: { "Jobgate-Log-Size": "42" } }));
  };
  const target = { kind: "one", task: "w", rank: 1, attempt: 2, container: null } as const;
  const transport = { get } as unknown as Transport;
  const log = await openLog(transport, "a-b", target, { offset: 3, search: "x y" }, new AbortController().signal);
  const lines: PlacedLine[] = [];
  for await (const line of log.lines) lines.push(line);
  expect(paths).toEqual(["api/v1/jobs/a-b/logs?task=w&rank=1&attempt=2&offset=3&search=x+y"]);
  expect(log.size).toBe(42);
  expect(lines.map(({ text, offset, number, isMissing }) => [text, offset, number, isMissing])).toEqual([
    ["one", 0, 1, false],
    ["[jobgate] lost", 9, 2, true],
  ]);
});
