import { describe, expect, test } from "vitest";
import type { JobSummary } from "../src/api/types";
import {
  type Arrangement,
  arrangementOf,
  comparisonOf,
  pressed,
  SORT_COLUMNS,
  withArrangement,
} from "../src/jobs/arrangement";
import { commandOf, FIRST_JOB } from "../src/jobs/example";

const NOW = Date.parse("2026-01-31T13:00:00Z");

function job(name: string, facts: Partial<JobSummary> & { phase?: string; started?: string; ended?: string } = {}) {
  const { phase = "Running", started = null, ended = null, ...rest } = facts;
  const none = { creating: 0, pending: 0, running: 0, succeeded: 0, failed: 0, unknown: 0, deleted: 0 };
  return {
    uid: name,
    name,
    kind: "GenericJob",
    createdBy: "alice",
    createdById: "token:Zk3vQ8xY1b",
    createdAt: "2026-01-31T12:00:00Z",
    status: { phase, startedAt: started, finishedAt: ended, aggregate: none },
    ...rest,
  } as unknown as JobSummary;
}

function order(jobs: JobSummary[], column: (typeof SORT_COLUMNS)[number], isDescending = false): string[] {
  return jobs.toSorted(comparisonOf({ column, isDescending }, NOW)).map(({ name }) => name);
}

describe("the arrangement in the address", () => {
  test.each<[string, Arrangement]>([
    ["", { sort: null, labels: [] }],
    ["sort=name", { sort: { column: "name", isDescending: false }, labels: [] }],
    ["sort=-age&column=team&column=a%2Fb", { sort: { column: "age", isDescending: true }, labels: ["team", "a/b"] }],
  ])("%s", (address, arrangement) => {
    expect(arrangementOf(new URLSearchParams(address))).toEqual(arrangement);
    expect(withArrangement(new URLSearchParams(), arrangement).toString()).toBe(address);
  });

  test.each(["sort=nonsense", "sort=--name", "sort=toString", "column="])("ignores %s", (address) => {
    expect(arrangementOf(new URLSearchParams(address))).toEqual({ sort: null, labels: [] });
  });

  test("a column is pressed three times", () => {
    const first = pressed(null, "name");
    const second = pressed(first, "name");
    expect([first, second, pressed(second, "name")]).toEqual([
      { column: "name", isDescending: false },
      { column: "name", isDescending: true },
      null,
    ]);
  });
});

describe("the order of jobs", () => {
  test("names with numbers are in the order of the numbers", () => {
    expect(order([job("run-10"), job("run-9"), job("a")], "name")).toEqual(["a", "run-9", "run-10"]);
  });

  test("a running job lasts until now, and one that has not started is the shortest", () => {
    const jobs = [
      job("short", { started: "2026-01-31T12:00:00Z", ended: "2026-01-31T12:10:00Z" }),
      job("queued"),
      job("runs", { started: "2026-01-31T12:30:00Z" }),
    ];
    expect(order(jobs, "duration")).toEqual(["queued", "short", "runs"]);
    expect(order(jobs, "duration", true)).toEqual(["runs", "short", "queued"]);
  });

  test.each(SORT_COLUMNS)("of equal jobs the newest is first, by %s in both directions", (column) => {
    const [older, newer] = [job("a"), job("a", { createdAt: "2026-01-31T12:00:01Z" })];
    if (column === "age") return;
    expect([older, newer].toSorted(comparisonOf({ column, isDescending: false }, NOW))).toEqual([newer, older]);
    expect([older, newer].toSorted(comparisonOf({ column, isDescending: true }, NOW))).toEqual([newer, older]);
  });
});

test("the command contains the example and the address without a slash", () => {
  const command = commandOf("https://gateway.example/prefix/");
  expect(command).toContain("--server https://gateway.example/prefix --watch <<'YAML'\n");
  expect(command).toContain(FIRST_JOB);
});
