import { describe, expect, test } from "vitest";
import { PLAIN, parseAnsi, type Style } from "../src/job/logs/ansi";

const styled = (style: Partial<Style>): Style => ({ ...PLAIN, ...style });

describe("styles", () => {
  test.each<[string, string, [number, number, Partial<Style>][]]>([
    ["plain text", "plain text", []],
    ["\x1b[31mred\x1b[0m plain", "red plain", [[0, 3, { foreground: 1 }]]],
    ["\x1b[1;32mok\x1b[m", "ok", [[0, 2, { foreground: 2, bold: true }]]],
    ["a\x1b[91mb\x1b[39mc", "abc", [[1, 2, { foreground: 9 }]]],
    ["\x1b[44;104mx", "x", [[0, 1, { background: 12 }]]],
    ["\x1b[4mu\x1b[24mv\x1b[4:0mw", "uvw", [[0, 1, { underline: true }]]],
    [
      "\x1b[7mi\x1b[27m \x1b[9ms\x1b[29m",
      "i s",
      [
        [0, 1, { inverse: true }],
        [2, 3, { strike: true }],
      ],
    ],
    ["\x1b[31m\x1b[31mone\x1b[31m span", "one span", [[0, 8, { foreground: 1 }]]],
    ["\x1b[38;5;196mx", "x", [[0, 1, { foreground: 9 }]]],
    ["\x1b[38;5;3mx", "x", [[0, 1, { foreground: 3 }]]],
    ["\x1b[38;5;244mx", "x", [[0, 1, { foreground: 8 }]]],
    ["\x1b[38;2;0;0;230mx", "x", [[0, 1, { foreground: 4 }]]],
    ["\x1b[38:2::250:250:250mx", "x", [[0, 1, { foreground: 15 }]]],
    ["\x1b[48:5:1mx", "x", [[0, 1, { background: 1 }]]],
    ["\x1b[38;5;1;1mx", "x", [[0, 1, { foreground: 1, bold: true }]]],
    ["\x1b[38;5;999mx", "x", []],
    ["\x1b[38;5mx", "x", []],
    ["\x1b[5;999;mx", "x", []],
  ])("%j", (raw, text, spans) => {
    const parsed = parseAnsi(raw);
    expect(parsed.text).toBe(text);
    expect(parsed.spans).toEqual(spans.map(([start, end, style]) => ({ start, end, style: styled(style) })));
  });

  test("continue on the next line until they are reset", () => {
    const first = parseAnsi("\x1b[33mwarning:");
    const second = parseAnsi("details", first.style);
    expect(second.spans).toEqual([{ start: 0, end: 7, style: styled({ foreground: 3 }) }]);
    expect(parseAnsi("\x1b[0mdone", second.style).style).toBe(PLAIN);
  });
});

describe("other control sequences are removed", () => {
  test.each([
    ["\x1b[2J\x1b[1;1Hcleared", "cleared"],
    ["\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"],
    ["\x1b]0;a title\x07text", "text"],
    ["\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["\x1bPdevice control\x1b\\text", "text"],
    ["\x1b(Bcharset", "charset"],
    ["\x9b31mC1", "C1"],
    ["bell\x07, back\bspace, null\0", "bell, backspace, null"],
    ["tab\tstays", "tab\tstays"],
    ["an escape at the end\x1b", "an escape at the end"],
    ["an open sequence \x1b[31", "an open sequence 31"],
    ["an open title \x1b]0;visible", "an open title 0;visible"],
    ["delete\x7f and \x85next line", "delete and next line"],
    ["<script>alert(1)</script>", "<script>alert(1)</script>"],
  ])("%j", (raw, text) => {
    expect(parseAnsi(raw).text).toBe(text);
  });

  test("in time that is proportional to the length of the line", () => {
    const raw = "\x1b]".repeat(300_000);
    expect(parseAnsi(raw).text).toBe("");
  });
});
