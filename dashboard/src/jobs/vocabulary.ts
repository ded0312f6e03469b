import type { JobKind, JobPhase } from "../api/types";

// The types make the compiler compare these with the OpenAPI document.
const PHASES: Readonly<Record<JobPhase, true>> = {
  Queued: true,
  Creating: true,
  Pending: true,
  Running: true,
  Scaling: true,
  Restarting: true,
  Paused: true,
  Resuming: true,
  Succeeded: true,
  Failed: true,
  TimedOut: true,
  Cancelled: true,
  Unknown: true,
};
const KINDS: Readonly<Record<JobKind, true>> = { GenericJob: true, TrainingJob: true, MxJob: true, DIJob: true };

/** The phases of jobs, in the order in which a job passes them. */
export const JOB_PHASES = Object.keys(PHASES) as JobPhase[];
export const JOB_KINDS = Object.keys(KINDS) as JobKind[];
