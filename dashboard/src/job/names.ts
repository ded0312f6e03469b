import type { Job } from "../api/types";

/** Return the name of a replica as the gateway writes it: `worker[3]`; empty for what concerns the whole job. */
export function replicaName(task: string | null, rank: number | null): string {
  if (task === null) return "";
  return rank === null ? task : `${task}[${rank}]`;
}

/** Return the value of the address's parameter `replica`: the rank follows the last slash. */
export function replicaKey(task: string, rank: number): string {
  return `${task}/${rank}`;
}

const TERMINAL: readonly string[] = ["Succeeded", "Failed", "TimedOut", "Cancelled"];

/** Whether the job has ended. Its phase never changes again. */
export function hasEnded(job: Pick<Job, "status">): boolean {
  return TERMINAL.includes(job.status.phase);
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  15: "SIGTERM",
};

/** Return the name of the signal that ended a container; empty if none did. Shells add 128 to its number. */
export function signalName(exitCode: number | null, signal: number | null): string {
  if (signal !== null) return SIGNALS[signal] ?? `signal ${signal}`;
  return exitCode !== null && exitCode > 128 ? (SIGNALS[exitCode - 128] ?? "") : "";
}

export interface Exit {
  exitCode: number | null;
  signal?: number | null;
  reason: string | null;
}

/** Reasons that repeat what the exit code says. */
const VAGUE: readonly string[] = ["Error", "Completed"];

/** Whether the exit itself says why: the cluster gives a reason, or a signal ended the container. */
export function hasReason({ exitCode, signal = null, reason }: Exit): boolean {
  return (reason !== null && !VAGUE.includes(reason)) || signalName(exitCode, signal) !== "";
}

/** Say how a container or an attempt ended: `exited with 137 (OOMKilled)`; empty if nothing is known. */
export function exitText({ exitCode, signal = null, reason }: Exit): string {
  const why = reason !== null && !VAGUE.includes(reason) ? reason : signalName(exitCode, signal);
  if (exitCode !== null) return `exited with ${exitCode}${why === "" ? "" : ` (${why})`}`;
  if (signal !== null) return `was ended by ${signalName(null, signal)}${reason === null ? "" : ` (${reason})`}`;
  return reason === null ? "" : `ended (${reason})`;
}
