import { expect, test } from "vitest";
import type { Attempt } from "../../src/api/types";
import { type Bar, groupsOf, isTroubled, replicaRow, runningSteps, timelineRows } from "../../src/job/timeline/rows";
import { at, attempt, replica } from "./builders";

const ms = (seconds: number) => Date.parse(at(seconds));
const FAILED = attempt(1, {
  phase: "Failed",
  outcome: "Failed",
  createdAt: at(0),
  startedAt: at(10),
  finishedAt: at(30),
  exitCode: 137,
  reason: "OOMKilled",
});
const RUNNING = attempt(2, { createdAt: at(40), startedAt: at(45) });

test.each<[name: string, attempts: Attempt[], bars: Bar[]]>([
  [
    "a failure and the attempt after it",
    [FAILED, RUNNING],
    [
      {
        attempt: 1,
        ending: "failed",
        start: ms(0),
        end: ms(30),
        segments: [
          { kind: "waiting", start: ms(0), end: ms(10) },
          { kind: "failed", start: ms(10), end: ms(30) },
        ],
      },
      {
        attempt: 2,
        ending: null,
        start: ms(40),
        end: null,
        segments: [
          { kind: "waiting", start: ms(40), end: ms(45) },
          { kind: "running", start: ms(45), end: null },
        ],
      },
    ],
  ],
  ["an attempt without a pod", [attempt(1, { phase: "Creating" })], []],
  [
    "a pod that has not started",
    [attempt(1, { phase: "Pending", createdAt: at(5) })],
    [{ attempt: 1, ending: null, start: ms(5), end: null, segments: [{ kind: "waiting", start: ms(5), end: null }] }],
  ],
  [
    "a container that never started",
    [attempt(1, { phase: "Failed", outcome: "Failed", createdAt: at(5), finishedAt: at(8) })],
    [
      {
        attempt: 1,
        ending: "failed",
        start: ms(5),
        end: ms(8),
        segments: [{ kind: "waiting", start: ms(5), end: ms(8) }],
      },
    ],
  ],
  [
    "a pod that vanished, whose bar does not grow",
    [attempt(1, { outcome: "Disrupted", createdAt: at(5), startedAt: at(6) })],
    [
      {
        attempt: 1,
        ending: "disrupted",
        start: ms(5),
        end: ms(6),
        segments: [
          { kind: "waiting", start: ms(5), end: ms(6) },
          { kind: "disrupted", start: ms(6), end: ms(6) },
        ],
      },
    ],
  ],
  [
    "an end that is not known, up to the next attempt",
    [attempt(1, { outcome: "Stopped", createdAt: at(5), startedAt: at(5) }), attempt(2, { createdAt: at(20) })],
    [
      {
        attempt: 1,
        ending: "stopped",
        start: ms(5),
        end: ms(20),
        segments: [
          { kind: "waiting", start: ms(5), end: ms(5) },
          { kind: "stopped", start: ms(5), end: ms(20) },
        ],
      },
      { attempt: 2, ending: null, start: ms(20), end: null, segments: [{ kind: "waiting", start: ms(20), end: null }] },
    ],
  ],
  [
    "a node that does not answer",
    [attempt(1, { phase: "Unknown", createdAt: at(1), startedAt: at(2) })],
    [
      {
        attempt: 1,
        ending: null,
        start: ms(1),
        end: null,
        segments: [
          { kind: "waiting", start: ms(1), end: ms(2) },
          { kind: "unknown", start: ms(2), end: null },
        ],
      },
    ],
  ],
])("draws %s", (_, attempts, bars) => {
  expect(replicaRow(replica("worker", 0, attempts)).bars).toEqual(bars);
});

test.each<[name: string, attempts: Attempt[], text: string]>([
  [
    "attempts",
    [FAILED, RUNNING],
    "worker[0], Running, 2 attempts: attempt 1 failed after 20s, exited with 137 (OOMKilled); attempt 2 running",
  ],
  ["no attempt", [], "worker[0], Creating, no attempt"],
  [
    "the latest of many attempts",
    [1, 2, 3, 4].map((number) => attempt(number, { outcome: "Disrupted" })),
    "worker[0], Running, 4 attempts, the latest: attempt 2 disrupted; attempt 3 disrupted; attempt 4 disrupted",
  ],
  [
    "a success",
    [attempt(1, { phase: "Succeeded", outcome: "Succeeded", startedAt: at(0), finishedAt: at(60), exitCode: 0 })],
    "worker[0], Succeeded, 1 attempt: attempt 1 succeeded after 60s",
  ],
])("says %s", (_, attempts, text) => {
  expect(replicaRow(replica("worker", 0, attempts)).text).toBe(text);
});

test("counts the running replicas over time", () => {
  const rows = [replica("worker", 0, [FAILED, RUNNING]), replica("worker", 1, [FAILED])].map(replicaRow);
  expect(runningSteps(rows)).toEqual([
    { at: ms(10), count: 2 },
    { at: ms(30), count: 0 },
    { at: ms(45), count: 1 },
  ]);
});

test("groups by task only what has no room otherwise", () => {
  const few = groupsOf([replica("server", 0, [FAILED]), replica("worker", 0, [RUNNING])]);
  expect(timelineRows(few, new Set(), false).map((row) => row.key)).toEqual(["server/0", "worker/0"]);
  const many = groupsOf([
    replica("server", 0, [FAILED]),
    ...ranks(10).map((rank) => replica("worker", rank, [RUNNING])),
  ]);
  expect(timelineRows(many, new Set(["worker"]), false).map((row) => row.key)).toEqual([
    "task server",
    "server/0",
    "task worker",
  ]);
});

test("shows only the replicas with a failure or a disruption", () => {
  const server = ranks(10).map((rank) => replica("server", rank, [RUNNING]));
  const groups = groupsOf([...server, replica("worker", 0, [RUNNING]), replica("worker", 1, [FAILED, RUNNING])]);
  expect(timelineRows(groups, new Set(), true).map((row) => row.key)).toEqual(["task worker", "worker/1"]);
});

test("summarizes a thousand replicas of two tasks", () => {
  const troubled = [FAILED, RUNNING];
  const groups = groupsOf([
    ...ranks(990).map((rank) => replica("worker", rank, rank % 10 === 0 ? troubled : [RUNNING])),
    ...ranks(10).map((rank) => replica("server", rank, [attempt(1, { phase: "Pending", createdAt: at(3) })])),
  ]);
  expect(groups.map((group) => group.text)).toEqual(["990 replicas: 990 running", "10 replicas: 10 pending"]);
  expect(timelineRows(groups, new Set(), false)).toHaveLength(1002);
  expect(groups.flatMap((group) => group.rows).filter(isTroubled)).toHaveLength(99);
  expect(groups[0]?.steps.at(-1)).toEqual({ at: ms(45), count: 990 });
});

function ranks(count: number): number[] {
  return Array.from({ length: count }, (_, rank) => rank);
}
