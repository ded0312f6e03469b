import { describe, expect, it } from "vitest";
import { EventParser, type ServerEvent } from "../src/api/events";

function parsed(...chunks: string[]): ServerEvent[] {
  const parser = new EventParser();
  return chunks.flatMap((chunk) => parser.feed(chunk));
}

describe("EventParser", () => {
  const STREAM = 'id: 1.7\nevent: job\ndata: {"a":1}\n\n: ping\n\nid: 1.8\nevent: end\ndata: {}\n\n';

  it("parses events, and ignores comments", () => {
    expect(parsed(STREAM)).toEqual([
      { id: "1.7", event: "job", data: '{"a":1}' },
      { id: "1.8", event: "end", data: "{}" },
    ]);
  });

  it.each(["\n", "\r\n", "\r"])("parses the same events however the stream is cut (line end %j)", (end) => {
    const stream = STREAM.replaceAll("\n", end);
    for (let cut = 0; cut <= stream.length; cut += 1) {
      // A \r at the end of the stream may be half of \r\n, so one more comment completes it.
      expect(parsed(stream.slice(0, cut), stream.slice(cut), `:${end}`)).toEqual(parsed(STREAM));
    }
  });

  it.each([
    ["several lines of data", "data: a\ndata: b\n\n", [{ id: null, event: "message", data: "a\nb" }]],
    ["one space after the colon is no part of the value", "data:  a\n\n", [{ id: null, event: "message", data: " a" }]],
    ["an event without data is none", "event: job\n\ndata: a\n\n", [{ id: null, event: "message", data: "a" }]],
    ["an unknown field is ignored", "retry: 5\ndata: a\n\n", [{ id: null, event: "message", data: "a" }]],
    [
      "an id lasts until the next one",
      "id: 1\ndata: a\n\ndata: b\n\n",
      [
        { id: "1", event: "message", data: "a" },
        { id: "1", event: "message", data: "b" },
      ],
    ],
    ["an id with NUL is ignored", "id: \0\ndata: a\n\n", [{ id: null, event: "message", data: "a" }]],
    ["an event that the stream does not complete is dropped", "data: a\n", []],
  ])("%s", (_, stream, events) => {
    expect(parsed(stream)).toEqual(events);
  });
});
