import { describe, expect, it } from "vitest";
import type { JobQueue, QueuedJob } from "../src/api/types";
import { absenceText, numberOf, positionText, sharesOf, usageText } from "../src/queues/queues";

function quota(
  nominalQuota: string | null,
  used: string | null,
  usedByQueue: string | null,
  cohortFree: string | null = null,
) {
  return { flavor: "f", resource: "cpu", nominalQuota, used, usedByQueue, cohortFree, cohortMost: cohortFree };
}

function waiting(uid: string, position: number | null = null): QueuedJob {
  return { uid, position, kind: "MxJob", name: uid, priority: 0, since: null, code: "WaitingForQuota", message: "" };
}

function queue(pendingJobs: QueuedJob[], pendingJobsOmitted = 0): JobQueue {
  const counts = { pending: 0, admitted: 0, pendingJobs, pendingJobsOmitted };
  const name = { namespace: "team", name: "q", observedAt: "2026-01-31T12:00:00Z" };
  return { ...name, clusterQueue: "research", cohort: null, active: true, message: "", resources: [], ...counts };
}

describe("quantities", () => {
  it.each([
    ["64", 64],
    ["200m", 0.2],
    ["1Gi", 2 ** 30],
    ["1.5k", 1500],
    ["1e3", 1000],
    ["2E", 2e18],
    ["0", 0],
    ["much", null],
    ["3Xi", null],
    [null, null],
  ])("%j is %j", (text, expected) => expect(numberOf(text)).toEqual(expected));
});

describe("a quota", () => {
  it.each([
    [quota("8", "6", "2"), { own: 0.25, others: 0.5, limit: 1 }, "2 of 8, 6 by all queues"],
    [quota("8", "2", "2"), { own: 0.25, others: 0, limit: 1 }, "2 of 8"],
    [quota("5", "10", "10"), { own: 1, others: 0, limit: 0.5 }, "10 of 5"],
    [quota("5", "10", "10", "3"), { own: 1, others: 0, limit: 0.5 }, "10 of 5, 3 free in the cohort"],
    [quota("0", "0", "0"), { own: 0, others: 0, limit: 1 }, "0 of 0"],
    [quota("8", "2", null), { own: 0, others: 0.25, limit: 1 }, "an unknown part of 8, 2 by all queues"],
    [quota(null, null, "1"), null, "1 of an unknown quota"],
    [quota(null, null, null), null, "not known"],
  ])("%j", (given, shares, text) => {
    expect(sharesOf(given)).toEqual(shares);
    expect(usageText(given)).toBe(text);
  });
});

describe("the position of a job", () => {
  it.each([
    [queue([waiting("x", 4), waiting("a", 7)]), "7 in the ClusterQueue research"],
    [queue([waiting("x"), waiting("a")], 3), "not reported by Kueue"],
    [queue([waiting("x")], 3), "after the first 1"],
    [queue([waiting("x")]), "not known"],
  ])("%#", (given, text) => expect(positionText(given, "a")).toBe(text));
});

it.each([
  ["listed", "", ""],
  ["listed", "may not read ClusterQueues", "may not read ClusterQueues"],
  ["absent", "", "The cluster does not serve Kueue, or jobgate does not use it: jobs run without queues."],
  ["denied", "no right", "jobgate may not read Kueue's objects. no right"],
  ["unknown", "", "jobgate has not listed the queues yet."],
  ["of a later version", "", "jobgate has not listed the queues yet."],
])("queues are absent because Kueue is %s %s", (state, message, text) => {
  expect(absenceText({ kueue: { state: state as "listed", message } })).toBe(text);
});
