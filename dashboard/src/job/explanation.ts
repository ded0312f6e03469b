import type { Job, JobPhase, PendingReason } from "../api/types";
import { exitText, hasEnded, hasReason } from "./names";

type FirstFailure = NonNullable<Job["status"]["firstFailure"]>;

/** The phase of a job and its cause, in words. */
export interface Explanation {
  /** `Failed: worker[3] exited with 137 (OOMKilled) on node-2, attempt 2`. */
  headline: string;
  /** The message of the status, unless the headline contains it. */
  detail: string;
  /** Why replicas wait, and the faults of those that run, the most frequent first. */
  waiting: readonly Waiting[];
  failure: Failure | null;
}

export interface Waiting {
  code: string;
  message: string;
  /** `worker[0], worker[1] and 18 more`. */
  replicas: string;
  since: string | null;
}

/** The first failed attempt of the job. */
export interface Failure {
  sentence: string;
  /** Whether the status names it as the cause of the present phase. Otherwise the job went on after it. */
  isCause: boolean;
  at: string;
  message: string;
  /** The last lines of its log; null if they are not stored. */
  lines: readonly string[] | null;
}

/** What to say about a phase without a message. */
const MEANINGS: Readonly<Record<JobPhase, string>> = {
  Queued: "the job is stored, and waits for the controller",
  Creating: "no replica has a node yet",
  Pending: "replicas have nodes, and not all of them have started",
  Running: "all replicas have started",
  Scaling: "the replicas do not yet match the new size",
  Restarting: "replicas wait for their next start",
  Paused: "no pods are kept while the job is paused",
  Resuming: "pods are created again after the pause",
  Succeeded: "the job has reached its goal",
  Failed: "the cause is not known",
  TimedOut: "the job was active for longer than its deadline",
  Cancelled: "a client cancelled the job",
  Unknown: "the state of the job cannot be obtained",
};

const NAMED_REPLICAS = 3;
/** Characters of a message beyond which only its first clause fits a headline. */
const LONG = 100;

export function explanation(job: Pick<Job, "status">): Explanation {
  const { phase, message, pendingReasons, firstFailure } = job.status;
  const failure = firstFailure === null ? null : failureOf(firstFailure, message);
  const waiting = hasEnded(job) ? [] : pendingReasons.map(waitingOf);
  const [cause, detail] = causeOf(job, waiting, failure);
  return { headline: `${phase}: ${cause}`, detail, waiting, failure };
}

/** Return the cause of the phase in one line of a table: why the job waits, or the last words of the attempt that failed it. */
export function causeInShort({ status }: Pick<Job, "status">): string {
  const { phase, message, pendingReasons, firstFailure } = status;
  const [first] = pendingReasons;
  if (first !== undefined && !hasEnded({ status })) return `${first.code}: ${first.message}`;
  const failure = firstFailure === null ? null : failureOf(firstFailure, message);
  if (phase !== "Failed" || firstFailure === null || failure?.isCause !== true) return message || MEANINGS[phase];
  if (hasReason(firstFailure)) return failure.sentence;
  const said = failure.lines?.findLast((line) => line.trim() !== "")?.trim() || failure.message;
  return said === "" ? failure.sentence : `${said} (${failure.sentence})`;
}

/** Return the cause of the phase for the headline, and what remains of the message of the status. */
function causeOf(
  { status: { phase, message, pendingReasons, aggregate } }: Pick<Job, "status">,
  waiting: readonly Waiting[],
  failure: Failure | null,
): [cause: string, detail: string] {
  if (phase === "Failed" && failure?.isCause === true) return [failure.sentence, message];
  const [first] = pendingReasons;
  // The list of reasons below contains the rest of the message.
  if (first !== undefined && waiting.length > 0 && message.startsWith(`${first.code}: ${first.message}`)) {
    const total = Object.values(aggregate).reduce((sum, count) => sum + count, 0);
    return [`${first.code}, ${first.count} of ${total} replicas wait`, ""];
  }
  const colon = message.length > LONG ? message.indexOf(": ") : -1;
  return colon < 0 ? [message || MEANINGS[phase], ""] : [message.slice(0, colon), message.slice(colon + 2)];
}

function failureOf(first: FirstFailure, message: string): Failure {
  const how = exitText(first) || "failed";
  const node = first.node === null ? "" : ` on ${first.node}`;
  return {
    sentence: `${first.replica} ${how}${node}, attempt ${first.attempt}`,
    isCause: isNamed(first, message),
    at: first.at,
    message: first.message ?? "",
    lines: first.lastLines,
  };
}

/** Whether the message of the status names this attempt: `worker[0] failed in attempt 1 on node node-a`. */
function isNamed({ replica, attempt }: FirstFailure, message: string): boolean {
  return ["failed", "was taken away"].some((how) => {
    const sentence = `${replica} ${how} in attempt ${attempt}`;
    const start = message.indexOf(sentence);
    return start >= 0 && !/^\d/.test(message.slice(start + sentence.length));
  });
}

function waitingOf({ code, message, since, replicas, count }: PendingReason): Waiting {
  const named = replicas.slice(0, NAMED_REPLICAS);
  const others = count - named.length;
  const list = named.join(", ");
  return { code, message, since, replicas: others > 0 ? `${list}${list && " and "}${others} more` : list };
}
