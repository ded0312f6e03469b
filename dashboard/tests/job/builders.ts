/** Records as the gateway answers them, for the tests of the view of a job. */
import type { Attempt, Container, HistoryEntry, Job, Replica, ScaleRecord } from "../../src/api/types";

/** Return the time that is this number of seconds after the job was submitted. */
export function at(seconds: number): string {
  return new Date(Date.UTC(2026, 0, 31, 12) + seconds * 1000).toISOString();
}

export function job(status: Partial<Job["status"]> = {}, changes: Partial<Job> = {}): Job {
  return {
    uid: "0b8d2d0e-8a43-4d4c-9d0b-6a1a8a1f8d10",
    namespace: "team-a",
    name: "train",
    kind: "GenericJob",
    apiVersion: "batch.tensorstack.dev/v1beta1",
    generation: 1,
    createdAt: at(0),
    createdBy: "alice",
    createdById: "token:Zk3vQ8xY1b",
    deletedAt: null,
    labels: {},
    annotations: {},
    spec: {},
    nativeStatus: {},
    importedAt: null,
    retryOf: null,
    purgeAt: null,
    scaling: {},
    conditions: [],
    status: {
      phase: "Running",
      reason: "ReplicasStarted",
      message: "",
      observedGeneration: 1,
      startedAt: null,
      finishedAt: null,
      observedAt: null,
      aggregate: { creating: 0, pending: 0, running: 0, succeeded: 0, failed: 0, unknown: 0, deleted: 0 },
      pendingReasons: [],
      restartsInPlace: 0,
      stillRunning: 0,
      warnings: [],
      firstFailure: null,
      queue: null,
      ...status,
    },
    ...changes,
  };
}

export function attempt(number: number, changes: Partial<Attempt> = {}): Attempt {
  return {
    number,
    podUid: null,
    phase: "Running",
    outcome: null,
    evidence: "None",
    evidenceReason: null,
    node: null,
    podIP: null,
    createdAt: null,
    startedAt: null,
    finishedAt: null,
    exitCode: null,
    reason: null,
    message: null,
    containers: [],
    logContainer: null,
    ...changes,
  };
}

export function container(changes: Partial<Container> = {}): Container {
  return {
    name: "main",
    init: false,
    default: false,
    state: "terminated",
    ready: false,
    image: null,
    restartCount: 0,
    exitCode: null,
    signal: null,
    reason: null,
    message: null,
    startedAt: null,
    finishedAt: null,
    ...changes,
  };
}

export function replica(task: string, rank: number, attempts: Attempt[], changes: Partial<Replica> = {}): Replica {
  const { phase, containers } = attempts.at(-1) ?? attempt(1, { phase: "Creating" });
  return {
    name: `train-${task}-${rank}`,
    task,
    rank,
    phase,
    attempt: Math.max(1, attempts.length),
    restartCount: 0,
    restartsInPlace: 0,
    disruptions: 0,
    leaving: false,
    retryAt: null,
    node: null,
    podIP: null,
    startedAt: null,
    finishedAt: null,
    exitCode: null,
    reason: null,
    message: null,
    containers,
    attempts,
    logAttempt: attempts.at(-1)?.number ?? null,
    ...changes,
  };
}

export function entry(seq: number, seconds: number, changes: Partial<HistoryEntry> = {}): HistoryEntry {
  return {
    seq,
    at: at(seconds),
    phase: "Running",
    reason: "ReplicasStarted",
    message: "",
    actor: "jobgate",
    actorId: "controller",
    task: null,
    rank: null,
    attempt: null,
    ...changes,
  };
}

export function scaleRecord(seq: number, seconds: number, changes: Partial<ScaleRecord> = {}): ScaleRecord {
  return {
    seq,
    task: "worker",
    fromReplicas: 2,
    toReplicas: 3,
    actor: "alice",
    actorId: "token:Zk3vQ8xY1b",
    reason: "",
    requestedAt: at(seconds),
    settledAt: null,
    outcome: null,
    message: "",
    ...changes,
  };
}
