import { ApiError } from "../../api/problems";
import type { Job } from "../../api/types";
import type { Action } from "./permitted";

const DONE: Readonly<Record<Action, string>> = {
  scale: "The new size is requested.",
  pause: "The pause is requested.",
  resume: "The resume is requested.",
  cancel: "The cancel is requested.",
  retry: "The new job is submitted.",
  delete: "The deletion is requested.",
};

/** Confirm an action that the gateway has accepted. */
export function confirmation(action: Action): string {
  return DONE[action];
}

/** Say that an action was not carried out because the job is no longer what the user saw. */
export function changeText(seen: Job, now: Job): string {
  const { phase, message } = now.status;
  const cause = message === "" ? "" : `: ${message}`;
  if (now.deletedAt !== null && seen.deletedAt === null) return "The job was deleted meanwhile.";
  if (phase !== seen.status.phase)
    return `The job has changed meanwhile. It was ${seen.status.phase}, and is ${phase}${cause}`;
  return `The job has changed meanwhile. It is still ${phase}${cause}`;
}

/** Say that a name no longer selects the job that the user saw. */
export function otherJobText(seen: Job): string {
  return `A newer job has the name ${seen.name} now, and actions apply to that job.`;
}

/** Whether the error says that the job has changed since the user saw it. */
export function isOutdated(error: Error): boolean {
  return error instanceof ApiError && error.status === 412;
}

/** Return the error to show. It says first if the role of the caller is the cause. */
export function shown(error: Error): Error {
  if (!(error instanceof ApiError) || error.code !== "Forbidden") return error;
  return new ApiError(
    error.status,
    error.code,
    `Your token does not permit this action: ${error.message}`,
    error.errors,
  );
}
