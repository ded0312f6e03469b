import { describe, expect, test } from "vitest";
import { ApiError } from "../src/api/problems";
import type { Aggregate, Job, JobPhase } from "../src/api/types";
import { type ActionInput, effectsOf } from "../src/job/actions/effects";
import { changeText, isOutdated, shown } from "../src/job/actions/outcome";
import { ACTIONS, type Action, permitted } from "../src/job/actions/permitted";
import { newKey } from "../src/job/actions/requests";
import { changedSizes, presentSizes, sizeError } from "../src/job/actions/sizes";

interface Facts {
  kind?: Job["kind"];
  phase?: JobPhase;
  reason?: string;
  message?: string;
  aggregate?: Partial<Aggregate>;
  spec?: Record<string, unknown>;
  scaling?: Job["scaling"];
  deletedAt?: string;
  stillRunning?: number;
}

function jobOf(facts: Facts = {}): Job {
  const none = { creating: 0, pending: 0, running: 0, succeeded: 0, failed: 0, unknown: 0, deleted: 0 };
  return {
    uid: "0b8d2d0e-8a43-4d4c-9d0b-6a1a8a1f8d10",
    namespace: "team",
    name: "train",
    kind: facts.kind ?? "GenericJob",
    apiVersion: "batch.tensorstack.dev/v1beta1",
    generation: 1,
    deletedAt: facts.deletedAt ?? null,
    createdAt: "2026-01-02T03:04:05Z",
    createdBy: "alice",
    createdById: "token:Zk3vQ8xY1b",
    labels: {},
    annotations: {},
    conditions: [],
    spec: facts.spec ?? {},
    nativeStatus: {},
    importedAt: null,
    retryOf: null,
    purgeAt: null,
    scaling: facts.scaling ?? {},
    status: {
      phase: facts.phase ?? "Running",
      reason: facts.reason ?? "ReplicasStarted",
      message: facts.message ?? "",
      observedGeneration: 1,
      startedAt: null,
      finishedAt: null,
      observedAt: null,
      aggregate: { ...none, ...facts.aggregate },
      pendingReasons: [],
      restartsInPlace: 0,
      stillRunning: facts.stillRunning ?? 0,
      warnings: [],
      firstFailure: null,
      queue: null,
    },
  };
}

const PAUSED = { runMode: { pause: { enabled: true }, debug: { enabled: false } } };
const DEBUG = { runMode: { pause: { enabled: false }, debug: { enabled: true } } };
const ELASTIC = { worker: { replicas: 4, min: 2, max: 8 }, learner: { replicas: 1, min: 1, max: 1 } };

describe("permitted actions", () => {
  test.each<[string, Facts, boolean, Action[]]>([
    ["a job that runs", {}, true, ["pause", "cancel", "delete"]],
    ["a job that waits", { phase: "Queued" }, true, ["pause", "cancel", "delete"]],
    ["a kind that cannot be paused", { kind: "MxJob" }, false, ["cancel", "delete"]],
    ["a job that can be scaled", { kind: "DIJob", scaling: ELASTIC }, false, ["scale", "cancel", "delete"]],
    ["a job whose bounds are equal", { scaling: { learner: ELASTIC.learner } }, false, ["cancel", "delete"]],
    ["a job that is paused", { phase: "Paused", spec: PAUSED }, true, ["resume", "cancel", "delete"]],
    ["a job that is being paused", { reason: "Pausing", spec: PAUSED }, true, ["resume", "cancel", "delete"]],
    ["a job that is being resumed", { phase: "Paused" }, true, ["pause", "cancel", "delete"]],
    ["a job in debug mode", { spec: DEBUG }, true, ["cancel", "delete"]],
    ["a job that is being cancelled", { reason: "Cancelling", scaling: ELASTIC }, true, ["delete"]],
    ["a paused job that is being cancelled", { reason: "Cancelling", spec: PAUSED }, true, ["delete"]],
    ["a job that has succeeded", { phase: "Succeeded", scaling: ELASTIC }, true, ["retry", "delete"]],
    ["a job that has failed", { phase: "Failed" }, true, ["retry", "delete"]],
    ["an ended job that still runs", { phase: "Failed", stillRunning: 1 }, true, ["cancel", "retry", "delete"]],
    ["a job that was paused when it ended", { phase: "Cancelled", spec: PAUSED }, true, ["retry", "delete"]],
    ["a deleted job that is being stopped", { deletedAt: "2026-01-02T03:04:05Z" }, true, []],
    ["a deleted job", { phase: "TimedOut", deletedAt: "2026-01-02T03:04:05Z" }, true, ["retry"]],
  ])("of %s", (_, facts, supportsPause, expected) => {
    const permissions = permitted(jobOf(facts), supportsPause);
    expect(ACTIONS.filter((action) => permissions[action] === null)).toEqual(expected);
  });

  test.each<[Action, Facts, boolean, string]>([
    ["pause", { kind: "MxJob" }, false, "Jobs of the kind MxJob cannot be paused."],
    ["pause", { spec: DEBUG }, true, "A job in debug mode cannot be paused."],
    ["resume", {}, true, "The job is not paused."],
    ["scale", {}, true, "The size of this job is fixed."],
    ["cancel", { phase: "Failed" }, true, "The job has ended as Failed."],
    ["cancel", { reason: "Cancelling" }, true, "The job is being cancelled already."],
    ["retry", {}, true, "Only a job that has ended can be retried."],
    ["delete", { deletedAt: "2026-01-02T03:04:05Z" }, true, "The job was deleted already."],
    ["pause", { deletedAt: "2026-01-02T03:04:05Z" }, true, "The job was deleted."],
  ])("the reason why %s is not permitted of %j", (action, facts, supportsPause, reason) => {
    expect(permitted(jobOf(facts), supportsPause)[action]).toBe(reason);
  });

  test("a spec of another form does not matter", () => {
    expect(permitted(jobOf({ spec: { runMode: "pause" } }), true).resume).toBe("The job is not paused.");
  });
});

describe("the effects", () => {
  test.each<[Action, Facts, Partial<ActionInput>, string[]]>([
    [
      "pause",
      { aggregate: { running: 10, pending: 1, unknown: 1, creating: 2, succeeded: 3 } },
      {},
      [
        "Pause stops 12 pods gracefully.",
        "Replicas without a node do not start: 2.",
        "Replicas that have succeeded do not run again: 3.",
        "Resume starts the replicas that have not ended again.",
      ],
    ],
    [
      "pause",
      { aggregate: { creating: 1 } },
      {},
      [
        "Pause stops no pods: none has a node.",
        "Replicas without a node do not start: 1.",
        "Resume starts the replicas that have not ended again.",
      ],
    ],
    [
      "resume",
      { phase: "Paused", aggregate: { deleted: 1, succeeded: 1 } },
      {},
      ["Resume starts 1 replica again, each in a new attempt.", "Replicas that have succeeded do not run again: 1."],
    ],
    [
      "resume",
      { phase: "Running", reason: "Pausing", aggregate: { deleted: 1, running: 1 } },
      {},
      ["Resume starts the replicas that the pause has stopped again, each in a new attempt."],
    ],
    [
      "cancel",
      { aggregate: { running: 1 } },
      {},
      [
        "Cancel stops 1 pod gracefully.",
        "The job ends as Cancelled, which cannot be undone.",
        "Its ended pods stay until it is deleted, unless the installation cleans them up.",
        "Its record, its history and its stored logs stay readable.",
      ],
    ],
    [
      "cancel",
      { phase: "Failed", aggregate: { running: 1, failed: 1 }, stillRunning: 1 },
      {},
      [
        "Cancel stops 1 pod gracefully.",
        "The job stays Failed, as it has ended.",
        "Its ended pods stay until it is deleted, unless the installation cleans them up.",
        "Its record, its history and its stored logs stay readable.",
      ],
    ],
    [
      "cancel",
      { kind: "DIJob", aggregate: { running: 2 }, spec: { cleanPodPolicy: "All" } },
      {},
      [
        "Cancel stops 2 pods gracefully.",
        "The job ends as Cancelled, which cannot be undone.",
        "Its clean-up policy is All: its ended pods are deleted.",
        "Its record, its history and its stored logs stay readable.",
      ],
    ],
    [
      "retry",
      { phase: "Failed" },
      {},
      [
        "Retry submits the manifest of this job again, as a new job with a name that begins with that of this job.",
        "This job, its history and its logs do not change.",
      ],
    ],
    [
      "retry",
      { kind: "TrainingJob", phase: "Failed" },
      { name: "again" },
      [
        "Retry submits the manifest of this job again, as a new job with the name again.",
        "It starts with the least number of trainers.",
        "This job, its history and its logs do not change.",
      ],
    ],
    [
      "delete",
      { aggregate: { running: 12 } },
      {},
      [
        "Delete cancels the job: it stops 12 pods gracefully.",
        "Delete removes its pods, Services and ConfigMaps from the cluster.",
        "Its record, its history and its stored logs stay readable; lists omit it.",
        "This cannot be undone.",
      ],
    ],
    [
      "delete",
      { phase: "Succeeded", aggregate: { succeeded: 12 } },
      {},
      [
        "Delete removes its pods, Services and ConfigMaps from the cluster.",
        "Its record, its history and its stored logs stay readable; lists omit it.",
        "This cannot be undone.",
      ],
    ],
    ["scale", { scaling: ELASTIC }, { sizes: { worker: 4 } }, ["These are the present sizes: nothing changes."]],
    [
      "scale",
      { scaling: ELASTIC },
      { sizes: { worker: 6 } },
      ["Scale adds 2 replicas to worker: ranks 4 to 5.", "The other replicas go on without a restart."],
    ],
    [
      "scale",
      { scaling: ELASTIC },
      { sizes: { worker: 3, learner: 2 } },
      [
        "Scale stops 1 replica of worker gracefully: rank 3.",
        "Scale adds 1 replica to learner: rank 1.",
        "The other replicas go on without a restart.",
      ],
    ],
  ])("of %s on %j with %j", (action, facts, input, effects) => {
    const empty = { reason: "", name: "", sizes: {} };
    expect(effectsOf(action, jobOf(facts), { ...empty, ...input })).toEqual(effects);
  });
});

describe("sizes", () => {
  const job = jobOf({ scaling: { ...ELASTIC, outside: { replicas: 9, min: 1, max: 5 } } });

  test.each<[string, number, string]>([
    ["worker", 2, ""],
    ["worker", 8, ""],
    ["worker", 1, "Enter a number from 2 to 8."],
    ["worker", 9, "Enter a number from 2 to 8."],
    ["worker", Number.NaN, "Enter a number."],
    ["worker", 2.5, "Enter a number."],
    ["outside", 9, ""],
    ["outside", 8, "Enter a number from 1 to 5."],
    ["absent", 1, "This task cannot be scaled."],
  ])("%s with %d", (task, size, error) => {
    expect(sizeError(job, task, size)).toBe(error);
  });

  test("only those that differ are requested", () => {
    expect(presentSizes(job)).toEqual({ worker: 4, learner: 1, outside: 9 });
    expect(changedSizes(job, { worker: 5, learner: 1, outside: 9, absent: 3 })).toEqual({ worker: 5 });
  });
});

describe("what prevents an action", () => {
  test.each<[Facts, Facts, string]>([
    [
      {},
      { phase: "Failed", message: "no rule holds" },
      "The job has changed meanwhile. It was Running, and is Failed: no rule holds",
    ],
    [{}, { phase: "Succeeded" }, "The job has changed meanwhile. It was Running, and is Succeeded"],
    [{}, { message: "2 of 2 run" }, "The job has changed meanwhile. It is still Running: 2 of 2 run"],
    [{}, { deletedAt: "2026-01-02T03:04:05Z" }, "The job was deleted meanwhile."],
  ])("a change from %j to %j", (seen, now, text) => {
    expect(changeText(jobOf(seen), jobOf(now))).toBe(text);
  });

  test.each([
    [new ApiError(412, "PreconditionFailed", "the job has changed"), true],
    [new ApiError(409, "AlreadyFinished", "the job has ended"), false],
    [new Error("the answer has no body"), false],
  ])("%s means that the job is outdated: %s", (error, expected) => {
    expect(isOutdated(error)).toBe(expected);
  });

  test("a role that is not sufficient", () => {
    const error = shown(new ApiError(403, "Forbidden", "the role viewer does not allow the verb control"));
    expect(error.message).toBe(
      "Your token does not permit this action: the role viewer does not allow the verb control",
    );
  });

  test.each([
    new ApiError(409, "Cancelling", "the job is being cancelled"),
    new ApiError(403, "PodPolicy", "the pod policy does not allow it"),
  ])("another error stays as it is: %s", (error) => {
    expect(shown(error)).toBe(error);
  });
});

test("each key of a retry is new, and fits into a header", () => {
  const keys = Array.from({ length: 10 }, newKey);
  expect(new Set(keys).size).toBe(10);
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/);
});
