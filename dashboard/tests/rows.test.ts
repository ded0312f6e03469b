import { describe, expect, it } from "vitest";
import { type Change, type Cursor, compareTimes, type Row, SortedRows } from "../src/live/rows";

function row(uid: string, createdAt: string, phase = "Running"): Row {
  return { uid, createdAt, deletedAt: null, status: { phase } };
}

function change(uid: string, phase: string, deletedAt: string | null = null): [string, Change] {
  return [uid, { uid, generation: 2, deletedAt, status: { phase } }];
}

const OLDER: Cursor = { token: "older", before: null };
const LOADED = [row("c", "2026-01-03T00:00:00Z"), row("b", "2026-01-02T00:00:00Z"), row("a", "2026-01-01T00:00:00Z")];

function loaded(items: readonly Row[] = LOADED, next: Cursor | null = null): SortedRows<Row> {
  const rows = new SortedRows<Row>();
  rows.append(items, next);
  return rows;
}

const uids = (rows: SortedRows<Row>) => rows.rows.items.map((each) => each.uid).join("");

describe("a page", () => {
  it("is appended, with one row for each object", () => {
    const rows = loaded(LOADED.slice(0, 2), OLDER);
    expect([uids(rows), rows.rows.next, rows.rows.isLoaded]).toEqual(["cb", OLDER, true]);
    rows.append(LOADED.slice(1), null);
    expect([uids(rows), rows.rows.next]).toEqual(["cba", null]);
  });
});

describe("changes", () => {
  it.each([
    ["a loaded object is updated", [change("b", "Failed")], [], "cba", []],
    ["a loaded object that leaves the phases of the filter is removed", [change("b", "Failed")], ["Running"], "ca", []],
    ["a deleted object is removed", [change("b", "Running", "2026-01-04T00:00:00Z")], [], "ca", []],
    [
      "an object is updated, and one before it removed",
      [change("a", "Failed"), change("b", "Gone")],
      ["Failed"],
      "ca",
      [],
    ],
    ["an unknown object is returned", [change("x", "Running")], [], "cba", ["x"]],
    ["an unknown object of another phase is not", [change("x", "Failed")], ["Running"], "cba", []],
    ["an unknown deleted object is not", [change("x", "Running", "2026-01-04T00:00:00Z")], [], "cba", []],
  ])("%s", (_, changes, phases, kept, unknown) => {
    const rows = loaded();
    expect([rows.apply(new Map(changes), phases), uids(rows)]).toEqual([unknown, kept]);
  });

  it("keep the objects of rows that did not change, so that they need not be drawn again", () => {
    const rows = loaded();
    rows.apply(new Map([change("b", "Failed")]), []);
    const { items } = rows.rows;
    expect(items[0]).toBe(LOADED[0]);
    expect(items[1]?.status.phase).toBe("Failed");
    expect(LOADED[1]?.status.phase).toBe("Running");
  });

  it("of an object that was removed concern an unknown object", () => {
    const rows = loaded();
    rows.apply(new Map([change("b", "Failed")]), ["Running"]);
    expect(rows.apply(new Map([change("b", "Running")]), ["Running"])).toEqual(["b"]);
  });

  it("of an object that comes with a later page are not returned, until a page is added", () => {
    const rows = loaded(LOADED, OLDER);
    rows.insert([row("x", "2025-01-01T00:00:00Z")]);
    expect(rows.apply(new Map([change("x", "Failed")]), [])).toEqual([]);
    rows.append([], OLDER);
    expect(rows.apply(new Map([change("x", "Failed")]), [])).toEqual(["x"]);
  });
});

describe("an object that was found", () => {
  it.each([
    ["comes first if it is newer", LOADED, null, row("n", "2026-01-04T00:00:00Z"), "ncba"],
    ["is sorted in between others", LOADED, null, row("n", "2026-01-02T12:00:00Z"), "cnba"],
    ["ends a complete list if it is older", LOADED, null, row("n", "2025-01-01T00:00:00Z"), "cban"],
    ["waits for its page if it is older", LOADED, OLDER, row("n", "2025-01-01T00:00:00Z"), "cba"],
    ["is not repeated", LOADED, null, row("b", "2026-01-02T00:00:00Z"), "cba"],
    ["is sorted by uid, descending, among those of its time", LOADED, null, row("bb", "2026-01-02T00:00:00Z"), "cbbba"],
    ["is shown if the pages read so far are empty", [], OLDER, row("n", "2026-01-01T00:00:00Z"), "n"],
  ])("%s", (_, items, next, found, expected) => {
    const rows = loaded(items, next);
    rows.insert([found]);
    expect(uids(rows)).toBe(expected);
  });

  it("comes back if it was the oldest one, because the next page begins after it", () => {
    const rows = loaded(LOADED, OLDER);
    rows.apply(new Map([change("a", "Failed")]), ["Running"]);
    rows.insert(LOADED.slice(2));
    expect(uids(rows)).toBe("cba");
  });

  it("is sorted among the objects of the pages that follow empty ones", () => {
    const rows = loaded([], OLDER);
    rows.insert([row("n", "2026-01-02T12:00:00Z")]);
    rows.append(LOADED, null);
    expect(uids(rows)).toBe("cnba");
  });

  it("is shown if an empty page may have passed it", () => {
    const rows = loaded(LOADED, OLDER);
    rows.append([], OLDER);
    rows.insert([row("n", "2025-01-01T00:00:00Z")]);
    expect(uids(rows)).toBe("cban");
  });
});

describe("trimming", () => {
  const many = [5, 4, 3, 3, 3, 2, 1].map((day, index) => row(`${9 - index}`, `2026-01-0${day}T00:00:00Z`));

  it.each([
    [2, "98", "2026-01-04T00:00:00Z"],
    [3, "98765", "2026-01-03T00:00:00Z"],
    [5, "98765", "2026-01-03T00:00:00Z"],
  ])("to %i rows keeps objects of one time together", (most, kept, before) => {
    const rows = loaded(many);
    rows.trim(most);
    expect([uids(rows), rows.rows.next]).toEqual([kept, { token: null, before }]);
    expect(rows.apply(new Map([change("3", "Failed")]), [])).toEqual(["3"]);
    rows.append(many.slice(kept.length), null);
    expect(uids(rows)).toBe("9876543");
  });

  it("leaves out no object of the oldest time, because the next page begins before that time", () => {
    const rows = loaded(many);
    rows.trim(3);
    rows.insert([row("0", "2026-01-03T00:00:00Z"), row("1", "2026-01-02T00:00:00Z")]);
    expect(uids(rows)).toBe("987650");
  });

  it("changes nothing if it is not known how far the rows are complete", () => {
    const rows = loaded([], OLDER);
    rows.insert(many);
    rows.trim(2);
    expect([uids(rows), rows.rows.next]).toEqual(["9876543", OLDER]);
  });

  it.each([7, 8])("to %i rows changes nothing if there are no more", (most) => {
    const rows = loaded(many, OLDER);
    rows.trim(most);
    expect([uids(rows), rows.rows.next]).toEqual(["9876543", OLDER]);
  });
});

describe("the work", () => {
  const LENGTH = 100_000;
  let reads = 0;
  /** A row that counts how often it is compared. */
  function counted(number: number): Row {
    const createdAt = `2026-01-01T00:00:00.${String(number).padStart(6, "0")}Z`;
    return {
      uid: `uid-${number}`,
      get createdAt() {
        reads += 1;
        return createdAt;
      },
      deletedAt: null,
      status: { phase: "Running" },
    };
  }
  const numbered = (first: number, count: number, step: number) =>
    Array.from({ length: count }, (_, index) => counted(first - index * step));
  /** The reads of two compared rows, for as many comparisons as a place takes, and one to copy a row. */
  const mostReads = (count: number, length: number) => count * (2 * (Math.ceil(Math.log2(length)) + 1) + 1);

  it("of 50 000 changes among 100 000 rows grows with the logarithm of the rows", () => {
    const rows = loaded(numbered(2 * LENGTH, LENGTH, 2));
    const changes = new Map(
      rows.rows.items.filter((_, index) => index % 2 === 1).map(({ uid }) => change(uid, "Failed")),
    );
    reads = 0;
    expect(rows.apply(changes, [])).toEqual([]);
    expect(reads).toBeLessThan(mostReads(changes.size, LENGTH));
    expect(rows.rows.items.filter((each) => each.status.phase === "Failed")).toHaveLength(50_000);
  });

  it("of 50 000 new objects among 100 000 rows grows with the logarithm of the rows", () => {
    const rows = loaded(numbered(2 * LENGTH, LENGTH, 2));
    const found = numbered(2 * LENGTH - 1, 50_000, 2);
    reads = 0;
    for (let first = 0; first < found.length; first += 5000) rows.insert(found.slice(first, first + 5000));
    // The objects of each answer are sorted too.
    expect(reads).toBeLessThan(mostReads(found.length, 2 * LENGTH) + mostReads(found.length, 5000));
    expect(rows.length).toBe(150_000);
    const times = rows.rows.items.map((each) => each.createdAt);
    expect(times).toEqual([...times].sort().reverse());
  });

  it("of 50 000 rows that leave the filter takes no comparisons", () => {
    const rows = loaded(numbered(LENGTH, LENGTH, 1));
    const changes = new Map(rows.rows.items.slice(0, 50_000).map(({ uid }) => change(uid, "Failed")));
    reads = 0;
    rows.apply(changes, ["Running"]);
    expect([reads, rows.length]).toEqual([0, 50_000]);
  });

  it("of trimming 100 000 rows is one search", () => {
    const rows = loaded(numbered(LENGTH, LENGTH, 1));
    reads = 0;
    rows.trim(10_000);
    expect(rows.length).toBe(10_000);
    expect(reads).toBeLessThan(mostReads(2, LENGTH));
  });
});

describe("compareTimes", () => {
  it("sorts times with and without a fraction", () => {
    const times = [
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:00:00.000001Z",
      "2026-01-01T00:00:00.1Z",
      "2026-01-01T00:00:01Z",
    ];
    expect([...times].reverse().sort(compareTimes)).toEqual(times);
    expect(compareTimes("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z")).toBe(0);
  });
});
