import { describe, expect, it } from "vitest";
import {
  type Change,
  instantKey,
  noRows,
  type Row,
  type Rows,
  withChanges,
  withFound,
  withPage,
} from "../src/live/rows";

function row(uid: string, createdAt: string, phase = "Running"): Row {
  return { uid, createdAt, deletedAt: null, status: { phase } };
}

function change(uid: string, phase: string, deletedAt: string | null = null): [string, Change] {
  return [uid, { uid, generation: 2, deletedAt, status: { phase } }];
}

const uids = (rows: Rows<Row>) => rows.items.map((each) => each.uid).join("");
const LOADED: Rows<Row> = {
  items: [row("c", "2026-01-03T00:00:00Z"), row("b", "2026-01-02T00:00:00Z"), row("a", "2026-01-01T00:00:00Z")],
  next: null,
  isLoaded: true,
};

describe("withPage", () => {
  it("appends, and keeps one row for each object", () => {
    const first = withPage(noRows<Row>(), LOADED.items.slice(0, 2), "token");
    expect([uids(first), first.next, first.isLoaded]).toEqual(["cb", "token", true]);
    const second = withPage(first, LOADED.items.slice(1), null);
    expect([uids(second), second.next]).toEqual(["cba", null]);
  });
});

describe("withChanges", () => {
  it.each([
    ["a loaded object is updated", [change("b", "Failed")], [], "cba", []],
    ["a loaded object that leaves the phases of the filter is removed", [change("b", "Failed")], ["Running"], "ca", []],
    ["a deleted object is removed", [change("b", "Running", "2026-01-04T00:00:00Z")], [], "ca", []],
    ["an unknown object is returned", [change("x", "Running")], [], "cba", ["x"]],
    ["an unknown object of another phase is not", [change("x", "Failed")], ["Running"], "cba", []],
    ["an unknown deleted object is not", [change("x", "Running", "2026-01-04T00:00:00Z")], [], "cba", []],
  ])("%s", (_, changes, phases, kept, unknown) => {
    const changed = withChanges(LOADED, new Map(changes), phases);
    expect([uids(changed.rows), changed.unknown]).toEqual([kept, unknown]);
  });

  it("keeps the objects of rows that did not change, so that they need not be drawn again", () => {
    const { rows } = withChanges(LOADED, new Map([change("b", "Failed")]), []);
    expect(rows.items[0]).toBe(LOADED.items[0]);
    expect(rows.items[1]?.status.phase).toBe("Failed");
  });
});

describe("withFound", () => {
  const PARTIAL = { ...LOADED, next: "token" };

  it.each([
    ["a newer object comes first", LOADED, row("n", "2026-01-04T00:00:00Z"), "ncba"],
    ["an object between others is sorted in", LOADED, row("n", "2026-01-02T12:00:00Z"), "cnba"],
    ["an older object ends a complete list", LOADED, row("n", "2025-01-01T00:00:00Z"), "cban"],
    ["an older object waits for its page", PARTIAL, row("n", "2025-01-01T00:00:00Z"), "cba"],
    ["a loaded object is not repeated", LOADED, row("b", "2026-01-02T00:00:00Z"), "cba"],
    ["objects of the same time are sorted by uid, descending", LOADED, row("bb", "2026-01-02T00:00:00Z"), "cbbba"],
    [
      "an empty list that is not loaded to its end gets nothing",
      { ...PARTIAL, items: [] },
      row("n", "2026-01-01T00:00:00Z"),
      "",
    ],
  ])("%s", (_, rows, found, expected) => {
    expect(uids(withFound(rows, [found]))).toBe(expected);
  });
});

describe("instantKey", () => {
  it("sorts times with and without a fraction", () => {
    const times = [
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:00:00.000001Z",
      "2026-01-01T00:00:00.1Z",
      "2026-01-01T00:00:01Z",
    ];
    expect(times.map(instantKey).sort()).toEqual(times.map(instantKey));
  });
});
