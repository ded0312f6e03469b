import { expect, test } from "vitest";
import type { Job } from "../../src/api/types";
import { causeInShort, explanation } from "../../src/job/explanation";
import { at, job } from "./builders";

type Status = Partial<Job["status"]>;

const OOM: NonNullable<Job["status"]["firstFailure"]> = {
  replica: "worker[3]",
  attempt: 2,
  node: "node-2",
  container: "main",
  exitCode: 137,
  signal: null,
  reason: "OOMKilled",
  message: null,
  lastLines: ["step 41", "allocating 8 GiB"],
  at: at(60),
};
const RULE = "failureRules[0] is fulfilled: any of worker[3] failed";
const UNSCHEDULABLE = {
  code: "Unschedulable",
  message: "0/3 nodes are available.",
  since: at(5),
  replicas: ["worker[0]", "worker[1]", "worker[2]", "worker[3]"],
  count: 25,
  started: false,
} as const;
const AGGREGATE = { creating: 25, pending: 0, running: 5, succeeded: 0, failed: 0, unknown: 0, deleted: 0 };

test.each<[name: string, status: Status, headline: string, detail: string]>([
  [
    "the failure that ended the job",
    { phase: "Failed", message: `${RULE}: worker[3] failed in attempt 2 on node node-2 (…)`, firstFailure: OOM },
    "Failed: worker[3] exited with 137 (OOMKilled) on node-2, attempt 2",
    `${RULE}: worker[3] failed in attempt 2 on node node-2 (…)`,
  ],
  [
    "a disruption that ended the job",
    {
      phase: "Failed",
      message: "worker[0] was taken away in attempt 1: evicted",
      firstFailure: { ...OOM, replica: "worker[0]", attempt: 1, exitCode: null, reason: null, node: null },
    },
    "Failed: worker[0] failed, attempt 1",
    "worker[0] was taken away in attempt 1: evicted",
  ],
  [
    "an end for which the first failure is not the cause",
    { phase: "Failed", message: "worker[3] failed in attempt 21 on node node-9", firstFailure: OOM },
    "Failed: worker[3] failed in attempt 21 on node node-9",
    "",
  ],
  [
    "a cancel after a failure",
    { phase: "Cancelled", message: "cancelled by alice", firstFailure: OOM },
    "Cancelled: cancelled by alice",
    "",
  ],
  [
    "a pending reason, which the list repeats",
    {
      phase: "Creating",
      message: "Unschedulable: 0/3 nodes are available. (25 of 30 replicas)",
      pendingReasons: [{ ...UNSCHEDULABLE, replicas: [...UNSCHEDULABLE.replicas] }],
      aggregate: AGGREGATE,
    },
    "Creating: Unschedulable, 25 of 30 replicas wait",
    "",
  ],
  [
    "a long message",
    { phase: "Restarting", message: `2 of 5 replicas are restarting: ${"trainer[0] failed; ".repeat(6)}` },
    "Restarting: 2 of 5 replicas are restarting",
    "trainer[0] failed; ".repeat(6),
  ],
  ["no message", { phase: "Queued" }, "Queued: the job is stored, and waits for the controller", ""],
])("explains %s", (_, status, headline, detail) => {
  expect(explanation(job(status))).toMatchObject({ headline, detail });
});

test("names the replicas that wait, and counts the others", () => {
  const pendingReasons = [{ ...UNSCHEDULABLE, replicas: [...UNSCHEDULABLE.replicas] }];
  expect(explanation(job({ phase: "Pending", pendingReasons })).waiting).toEqual([
    {
      code: "Unschedulable",
      message: "0/3 nodes are available.",
      since: at(5),
      replicas: "worker[0], worker[1], worker[2] and 22 more",
    },
  ]);
});

test("an ended job waits for nothing", () => {
  const pendingReasons = [{ ...UNSCHEDULABLE, replicas: ["worker[0]"], count: 1 }];
  expect(explanation(job({ phase: "Cancelled", pendingReasons })).waiting).toEqual([]);
});

test("shows the first failure of a job that went on", () => {
  expect(explanation(job({ phase: "Running", firstFailure: OOM })).failure).toEqual({
    sentence: "worker[3] exited with 137 (OOMKilled) on node-2, attempt 2",
    isCause: false,
    at: at(60),
    message: "",
    lines: ["step 41", "allocating 8 GiB"],
  });
});

const WAITING = { ...UNSCHEDULABLE, replicas: [...UNSCHEDULABLE.replicas] };

test.each<[string, Status, string]>([
  [
    "the attempt that failed the job",
    { phase: "Failed", message: `${RULE}: worker[3] failed in attempt 2`, firstFailure: OOM },
    "worker[3] exited with 137 (OOMKilled) on node-2, attempt 2",
  ],
  ["the message, if the first failure is not the cause", { phase: "Failed", message: RULE, firstFailure: OOM }, RULE],
  ["why the job waits", { phase: "Pending", pendingReasons: [WAITING] }, "Unschedulable: 0/3 nodes are available."],
  [
    "what happened to a job that waited",
    { phase: "Cancelled", message: "no need", pendingReasons: [WAITING] },
    "no need",
  ],
  ["the meaning of a phase without a message", { phase: "Queued" }, "the job is stored, and waits for the controller"],
])("in short, %s", (_, status, text) => {
  expect(causeInShort(job(status))).toBe(text);
});
