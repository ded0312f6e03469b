import { describe, expect, test } from "vitest";
import { cutOffReason, LineReader, stamped, stampKey } from "../src/job/logs/lines";
import { mergedEntry } from "../src/job/logs/merged";
import { LineSplitter, lastState } from "../src/job/logs/splitter";

const bytes = (text: string) => new TextEncoder().encode(text);

function split(chunks: Uint8Array[], longest?: number): string[] {
  const splitter = new LineSplitter(longest);
  return [...chunks.flatMap((chunk) => splitter.feed(chunk)), ...splitter.end()];
}

describe("a log is split into lines", () => {
  const text = "grüße\n\u{1f680} 漢字\r\n\nlast";
  const lines = ["grüße", "\u{1f680} 漢字\r", "", "last"];

  test.each(Array.from({ length: 8 }, (_, index) => index + 1))("in chunks of %i bytes", (size) => {
    const all = bytes(text);
    const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
      all.slice(index * size, (index + 1) * size),
    );
    expect(split(chunks)).toEqual(lines);
  });

  test.each<[string, Uint8Array[], string[]]>([
    ["an empty log", [], []],
    ["a log that ends with a line feed", [bytes("a\nb\n")], ["a", "b"]],
    ["bytes that are no UTF-8", [Uint8Array.of(0x61, 0xff, 0x62, 0x0a)], ["a\ufffdb"]],
    ["a character that is cut off", [Uint8Array.of(0x61, 0xe2, 0x82)], ["a\ufffd"]],
  ])("%s", (_, chunks, expected) => {
    expect(split(chunks)).toEqual(expected);
  });

  test.each([
    ["in one chunk", ["abcdefghij\nk\n"]],
    ["in many chunks", ["ab", "cdefg", "h", "ij\n", "k\n"]],
  ])("a line that is too long continues on the next, %s", (_, texts) => {
    const lines = split(texts.map(bytes), 4);
    expect(lines.join("|")).toBe("abcd|efgh|ij|k");
  });

  test("no character is divided", () => {
    expect(split([bytes("abc\u{1f680}d\n")], 4)).toEqual(["abc", "\u{1f680}d"]);
  });
});

test.each([
  ["plain", "plain"],
  ["windows\r", "windows"],
  ["10%\r20%\r30%", "30%"],
  ["10%\r20%\r", "20%"],
  ["10%\r20%\r\r", "20%"],
  ["\rdone", "done"],
  ["\r", ""],
])("the last state of %j is %j", (line, state) => {
  expect(lastState(line)).toBe(state);
});

test.each([
  ["2026-01-02T03:04:05.678901234Z text", "2026-01-02T03:04:05.678901234Z", "text"],
  ["2026-01-02T03:04:05Z ", "2026-01-02T03:04:05Z", ""],
  ["2026-01-02T03:04:05.6+02:00  indented", "2026-01-02T03:04:05.6+02:00", " indented"],
  ["no time", null, "no time"],
  ["2026-01-02 03:04:05 of the program", null, "2026-01-02 03:04:05 of the program"],
])("the time of %j is %j", (line, at, raw) => {
  expect(stamped(line)).toEqual({ at, raw });
});

test("times sort to the nanosecond, whatever their form", () => {
  const sorted = [
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.000000001Z",
    "2026-01-02T05:04:05.1+02:00",
    "2026-01-02T03:04:05.100000001Z",
    "2026-01-02T03:04:06Z",
  ];
  expect(sorted.map(stampKey)).toEqual(sorted.map(stampKey).sort());
  expect(new Set(sorted.map(stampKey)).size).toBe(sorted.length);
});

test("a style continues on the next line of its source only", () => {
  const reader = new LineReader();
  const read = (source: string, raw: string) => reader.read({ source, at: null, raw }).spans.length;
  expect(read("worker[0]", "\x1b[31mred")).toBe(1);
  expect(read("worker[1]", "plain")).toBe(0);
  expect(read("worker[0]", "still red")).toBe(1);
});

test.each([
  ["[jobgate] the log is cut off here: the process stops", "the process stops"],
  ["[jobgate] another line", null],
  [" [jobgate] the log is cut off here: not at the beginning", null],
])("the reason of %j is %j", (line, reason) => {
  expect(cutOffReason(line)).toBe(reason);
});

test.each([
  [
    '{"task":"worker","rank":3,"attempt":1,"at":"2026-01-02T03:04:05Z","line":"hello"}',
    { kind: "line", line: { source: "worker[3]", at: "2026-01-02T03:04:05Z", raw: "hello" } },
  ],
  [
    '{"task":"worker","rank":0,"attempt":2,"at":null,"line":""}',
    { kind: "line", line: { source: "worker[0]#2", at: null, raw: "" } },
  ],
  [
    '{"task":null,"rank":null,"attempt":null,"at":null,"line":"[jobgate] the log is cut off here: the token was revoked"}',
    { kind: "cutOff", reason: "the token was revoked" },
  ],
  ['{"task":null,"rank":null,"attempt":null,"at":null,"line":"another line"}', { kind: "none" }],
  ['{"event":"ping"}', { kind: "none" }],
  ["{half a line", { kind: "none" }],
  ["7", { kind: "none" }],
  ["", { kind: "none" }],
])("the merged line %j", (text, entry) => {
  expect(mergedEntry(text)).toEqual(entry);
});
