import type { Job } from "../../api/types";
import { hasEnded } from "../names";

export const ACTIONS = ["scale", "pause", "resume", "cancel", "retry", "delete"] as const;

export type Action = (typeof ACTIONS)[number];

type JobState = Pick<Job, "status" | "deletedAt">;

/** For each action null if it is permitted, otherwise the reason, as a sentence. */
export type Permissions = Readonly<Record<Action, string | null>>;

/** Return which actions the phase and the kind of a job permit. The gateway decides; this explains it before. */
export function permitted(job: Job, supportsPause: boolean): Permissions {
  const ended = endOf(job);
  return {
    scale: ended ?? scaleRefusal(job),
    pause: ended ?? pauseRefusal(job, supportsPause),
    resume: ended ?? resumeRefusal(job, supportsPause),
    ...commonRefusals(job),
  };
}

/** The same for the actions on jobs of every kind, which need no more than a summary. */
export function commonRefusals(job: JobState): Pick<Permissions, "cancel" | "retry" | "delete"> {
  const refusal = endOf(job) ?? (isCancelling(job) ? "The job is being cancelled already." : null);
  return {
    cancel: runsAfterEnd(job) ? null : refusal,
    retry: hasEnded(job) ? null : "Only a job that has ended can be retried.",
    delete: job.deletedAt === null ? null : "The job was deleted already.",
  };
}

/** Whether the job has ended and its clean-up policy keeps replicas that run. A cancel stops them. */
function runsAfterEnd(job: JobState): boolean {
  return job.deletedAt === null && job.status.stillRunning > 0;
}

function endOf(job: JobState): string | null {
  if (job.deletedAt !== null) return "The job was deleted.";
  return hasEnded(job) ? `The job has ended as ${job.status.phase}.` : null;
}

function scaleRefusal(job: Job): string | null {
  if (isCancelling(job)) return "The job is being cancelled.";
  const canChange = Object.values(job.scaling).some(({ min, max }) => min !== max);
  return canChange ? null : "The size of this job is fixed.";
}

function pauseRefusal(job: Job, supportsPause: boolean): string | null {
  if (!supportsPause) return `Jobs of the kind ${job.kind} cannot be paused.`;
  if (isCancelling(job)) return "The job is being cancelled.";
  if (runMode(job, "debug")) return "A job in debug mode cannot be paused.";
  return isPaused(job) ? "The job is paused already." : null;
}

function resumeRefusal(job: Job, supportsPause: boolean): string | null {
  if (!supportsPause) return `Jobs of the kind ${job.kind} cannot be paused.`;
  if (isCancelling(job)) return "The job is being cancelled.";
  return isPaused(job) ? null : "The job is not paused.";
}

/** Whether a client has requested the end of the job, and its pods are being stopped. */
function isCancelling(job: JobState): boolean {
  return job.status.reason === "Cancelling";
}

/** Whether a client has requested that the job has no pods. It may still have some. */
function isPaused(job: Job): boolean {
  return runMode(job, "pause");
}

function runMode(job: Job, mode: "debug" | "pause"): boolean {
  const value = record(record(record(job.spec).runMode)[mode]).enabled;
  return value === true;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
