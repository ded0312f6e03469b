import { describe, expect, test } from "vitest";
import type { Attempt, Replica } from "../src/api/types";
import { fileName, leftOutOf, logPath, logSourceOf } from "../src/job/logs/log-request";
import {
  attemptText,
  containersOf,
  keyOf,
  matchingReplicas,
  selectionOf,
  type Target,
  targetOf,
  withSelection,
} from "../src/job/logs/selection";
import { summaryOf } from "../src/job/logs/summary";
import { thousands } from "../src/ui/numbers";
import { attempt, container, replica } from "./job/builders";

const replicaOf = (task: string, rank: number, attempts: Attempt[] = [attempt(1)], changes: Partial<Replica> = {}) =>
  replica(task, rank, attempts, { node: "node-1", ...changes });

const SEVERAL = [
  replicaOf("ps", 0),
  replicaOf("worker", 0, [attempt(1), attempt(2), attempt(3)]),
  replicaOf("worker", 1),
];
const ONE = [replicaOf("main", 0)];
/** It waits for its third attempt. */
const RESTARTING = [replicaOf("main", 0, [attempt(1), attempt(2), attempt(3)], { logAttempt: 2 })];
const WORKERS = [replicaOf("worker", 0), replicaOf("worker", 7)];

const LIVE = { isLive: true, isKept: false, missing: "", isTruncated: false };

const one = (task: string, rank: number, attempt = 1, name: string | null = null): Target => ({
  kind: "one",
  task,
  rank,
  attempt,
  container: name,
});

describe("the log of an address", () => {
  test.each<[string, Replica[], Target | null]>([
    ["", SEVERAL, { kind: "merged", task: null }],
    ["", ONE, one("main", 0)],
    ["", [], null],
    ["", RESTARTING, one("main", 0, 2)],
    ["attempt=3&rank=0", RESTARTING, one("main", 0, 3)],
    ["task=worker&rank=1", SEVERAL, one("worker", 1)],
    ["task=worker", SEVERAL, { kind: "merged", task: "worker" }],
    ["task=ps", SEVERAL, one("ps", 0)],
    ["task=absent&rank=0", SEVERAL, { kind: "merged", task: null }],
    ["task=worker&rank=0&attempt=2", SEVERAL, one("worker", 0, 2)],
    ["task=worker&rank=0&attempt=9", SEVERAL, one("worker", 0, 3)],
    ["rank=7&container=side", WORKERS, one("worker", 7, 1, "side")],
    ["rank=1", SEVERAL, { kind: "merged", task: null }],
    ["task=worker&rank=99", SEVERAL, { kind: "merged", task: "worker" }],
    ["task=worker&rank=-1", WORKERS, { kind: "merged", task: "worker" }],
    ["task=worker&rank=7e0", WORKERS, { kind: "merged", task: "worker" }],
  ])("%j", (query, replicas, target) => {
    expect(targetOf(selectionOf(new URLSearchParams(query)), replicas)).toEqual(target);
  });

  test("a selection replaces its own parameters only", () => {
    const query = new URLSearchParams("replica=worker%2F1&task=ps&rank=0&q=loss");
    const changed = withSelection(query, { ...selectionOf(query), task: "worker", rank: 1, attempt: 2, search: "" });
    expect(changed.toString()).toBe("replica=worker%2F1&task=worker&rank=1&attempt=2");
    expect(selectionOf(changed)).toEqual({
      ...{ task: "worker", rank: 1, attempt: 2, container: null },
      ...{ search: "", at: null, time: null },
    });
  });

  test.each([
    ["at=1048576", 1048576, null],
    ["at=0", 0, null],
    ["at=-1", null, null],
    ["at=9999999999999999", null, null],
    ["time=2026-01-31T12:00:00Z", null, "2026-01-31T12:00:00Z"],
  ])("the place in the whole log of %s", (query, at, time) => {
    const selection = selectionOf(new URLSearchParams(query));
    expect([selection.at, selection.time]).toEqual([at, time]);
    expect(withSelection(new URLSearchParams(), selection).get("at")).toBe(at === null ? null : String(at));
  });

  test("different logs have different keys", () => {
    const merged = [null, "a"].map((task): Target => ({ kind: "merged", task }));
    const targets = [...merged, one("a", 1), one("a", 1, 2), one("a", 1, 1, "c"), one("a", 11)];
    expect(new Set(targets.map(keyOf)).size).toBe(targets.length);
  });
});

test.each<[string, number[]]>([
  ["", [0, 1, 2]],
  ["worker", [1, 2]],
  ["WORKER[1]", [2]],
  ["worker 1", [2]],
  ["running node-1", [0, 1, 2]],
  ["failed", []],
  ["0", [0, 1]],
])("the replicas that match %j", (text, indexes) => {
  expect(matchingReplicas(SEVERAL, text)).toEqual(indexes.map((index) => SEVERAL[index]));
});

test("the container whose log is shown first begins the list", () => {
  const containers = [
    container({ name: "fetch", init: true }),
    container({ name: "prepare", init: true }),
    container(),
  ];
  const found = replicaOf("worker", 0, [attempt(1, { containers, logContainer: "prepare" })]);
  expect(containersOf(found, 1)).toEqual(["prepare", "main", "fetch"]);
});

test("the containers of an attempt, the default one first and init containers last", () => {
  const containers = [
    container({ name: "prepare", init: true }),
    container({ name: "side" }),
    container({ default: true }),
  ];
  const attempts = [attempt(1, { containers: [container({ name: "old" })] }), attempt(2, { logContainer: "main" })];
  const found = replicaOf("worker", 0, attempts, { containers });
  expect(containersOf(found, 1)).toEqual(["old"]);
  expect(containersOf(found, 2)).toEqual(["main", "side", "prepare"]);
});

test.each<[Attempt, boolean, string]>([
  [attempt(2), true, "Attempt 2 (current): Running"],
  [attempt(1, { phase: "Failed", outcome: "Failed", exitCode: 3 }), false, "Attempt 1: Failed, exit code 3"],
  [attempt(1, { phase: "Deleted", outcome: "Stopped" }), false, "Attempt 1: Stopped"],
])("an attempt in words", (shown, isCurrent, text) => {
  expect(attemptText(shown, isCurrent)).toBe(text);
});

describe("requests", () => {
  const all = { follow: false, tailLines: null, sinceTime: null, timestamps: false };

  test.each([
    [one("w", 0), all, "task=w&rank=0&attempt=1"],
    [one("w", 3, 2, "a&b"), all, "task=w&rank=3&attempt=2&container=a%26b"],
    [
      one("w", 0),
      { follow: true, tailLines: 10, sinceTime: "2026-01-02T03:04:05Z", timestamps: true },
      "task=w&rank=0&attempt=1&follow=true&tailLines=10&sinceTime=2026-01-02T03%3A04%3A05Z&timestamps=true",
    ],
    [{ kind: "merged", task: null } as const, { ...all, follow: true }, "merged=true&follow=true"],
    [{ kind: "merged", task: "w" } as const, { ...all, tailLines: 5 }, "merged=true&task=w&tailLines=5"],
  ])("for %j", (target, part, query) => {
    expect(logPath("a-b", target, part)).toBe(`api/v1/jobs/a-b/logs?${query}`);
  });

  test.each([
    [{}, null, ""],
    [{ "Jobgate-Log-Left-Out": "worker[64-99]" }, null, "worker[64-99]"],
    [{ "Jobgate-Log-Source": "live", "Jobgate-Log-Truncated": "false" }, LIVE, ""],
    [
      { "Jobgate-Log-Source": "stored", "Jobgate-Log-Truncated": "true" },
      { ...LIVE, isLive: false, isTruncated: true },
      "",
    ],
    [{ "Jobgate-Log-Source": "kept, live" }, { ...LIVE, isKept: true }, ""],
    [
      { "Jobgate-Log-Source": "kept", "Jobgate-Log-Missing": "1 gap, cut" },
      { ...LIVE, isKept: true, missing: "1 gap, cut" },
      "",
    ],
  ])("the headers %j", (headers, source, leftOut) => {
    const given = new Headers(headers as Record<string, string>);
    expect(logSourceOf(given)).toEqual(source);
    expect(leftOutOf(given)).toBe(leftOut);
  });

  test.each([
    [{ kind: "merged", task: null } as const, "train.log"],
    [{ kind: "merged", task: "worker" } as const, "train-worker.log"],
    [one("worker", 3, 2), "train-worker-3-attempt-2.log"],
    [one("worker", 3, 2, "side"), "train-worker-3-attempt-2-side.log"],
  ])("the file of %j", (target, name) => {
    expect(fileName("train", target)).toBe(name);
  });
});

describe("the state of a log", () => {
  const facts = {
    phase: "open",
    source: LIVE,
    interruption: null,
    leftOut: "",
    hasGap: false,
    dropped: 0,
  } as const;
  const stored = { ...LIVE, isLive: false };

  test.each([
    ["live", facts, "Live", []],
    ["connecting", { ...facts, phase: "connecting", source: null } as const, "Connecting…", []],
    ["stored", { ...facts, phase: "ended", source: stored } as const, "Stored", [/^This is the whole log, stored/]],
    [
      "stored in part",
      { ...facts, phase: "ended", source: { ...stored, isTruncated: true } } as const,
      "Stored",
      [/Its earlier lines were not stored/],
    ],
    ["ended", { ...facts, phase: "ended" } as const, "Ended", []],
    [
      "interrupted",
      { ...facts, phase: "interrupted", interruption: "the process stops" } as const,
      "Interrupted",
      [/interrupted: the process stops\. The page continues it/],
    ],
    ["refused", { ...facts, phase: "failed", interruption: "the token was revoked" } as const, "Not available", []],
    ["with a gap", { ...facts, hasGap: true }, "Live", [/missing or repeated/]],
    ["merged in part", { ...facts, leftOut: "worker[64-99]" }, "Live", [/left out: worker\[64-99\]\./]],
    ["with one dropped line", { ...facts, dropped: 1 }, "Live", [/dropped at least 1 earlier line\./]],
    ["with gaps", { ...facts, source: { ...LIVE, missing: "2 gaps" } }, "Live", [/not whole: 2 gaps\./]],
    [
      "kept with dropped lines",
      { ...facts, source: { ...LIVE, isKept: true }, dropped: 2 },
      "Live",
      [/lines\. The whole log and the download have them\.$/],
    ],
    ["with dropped lines", { ...facts, dropped: 1234 }, "Live", [/dropped at least 1\u202f234 earlier lines\./]],
  ])("%s", (_, given, state, notes) => {
    const summary = summaryOf(given);
    expect(summary.state).toBe(state);
    expect(summary.notes).toHaveLength(notes.length);
    for (const [index, note] of notes.entries()) expect(summary.notes[index]).toMatch(note);
  });

  test.each([
    [0, "0"],
    [999, "999"],
    [1000, "1\u202f000"],
    [1_234_567, "1\u202f234\u202f567"],
  ])("the number %d", (value, text) => {
    expect(thousands(value)).toBe(text);
  });
});
