import type { Target } from "./selection";

/** The part of a log that is requested. */
export interface LogPart {
  follow: boolean;
  /** The last lines, of each replica if the log is merged; null for all lines. */
  tailLines: number | null;
  /** Only lines of this time and later ones; null for lines of any time. */
  sinceTime: string | null;
  timestamps: boolean;
}

/** What the headers of an answer say about the log of one replica. */
export interface LogSource {
  /** Whether its lines come from the cluster or from the log store. Otherwise it is the part that was stored. */
  isLive: boolean;
  /** Whether all of it is in the log store. */
  isKept: boolean;
  /** What is missing of a log that is kept, in words; empty if nothing is. */
  missing: string;
  /** Whether the log had earlier lines that were not stored. */
  isTruncated: boolean;
}

/** Return the path of a log, relative to the gateway. */
export function logPath(uid: string, target: Target, part: LogPart): string {
  const query = new URLSearchParams();
  if (target.kind === "merged") {
    query.set("merged", "true");
    if (target.task !== null) query.set("task", target.task);
  } else {
    query.set("task", target.task);
    query.set("rank", String(target.rank));
    query.set("attempt", String(target.attempt));
    if (target.container !== null) query.set("container", target.container);
  }
  if (part.follow) query.set("follow", "true");
  if (part.tailLines !== null) query.set("tailLines", String(part.tailLines));
  if (part.sinceTime !== null) query.set("sinceTime", part.sinceTime);
  if (part.timestamps) query.set("timestamps", "true");
  return `api/v1/jobs/${encodeURIComponent(uid)}/logs?${query}`;
}

export function acceptOf(target: Target): string {
  return target.kind === "merged" ? "application/jsonl" : "text/plain";
}

/** Return where a log comes from; null for a merged log, whose parts differ. */
export function logSourceOf(headers: Headers): LogSource | null {
  const source = headers.get("Jobgate-Log-Source");
  if (source === null) return null;
  return {
    isLive: source !== "stored",
    isKept: source.startsWith("kept"),
    missing: headers.get("Jobgate-Log-Missing") ?? "",
    isTruncated: headers.get("Jobgate-Log-Truncated") === "true",
  };
}

/** Return the replicas that a merged log leaves out, as `worker[64-99]`; empty if it has all of them. */
export function leftOutOf(headers: Headers): string {
  return headers.get("Jobgate-Log-Left-Out") ?? "";
}

/** Return the name of the file of a downloaded log. */
export function fileName(job: string, target: Target): string {
  if (target.kind === "merged") return target.task === null ? `${job}.log` : `${job}-${target.task}.log`;
  const container = target.container === null ? "" : `-${target.container}`;
  return `${job}-${target.task}-${target.rank}-attempt-${target.attempt}${container}.log`;
}
