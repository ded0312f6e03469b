/** Facts about queues in words, and shares of their quota. Pure. */
import type { JobQueue, JobQueuePage, Quota } from "../api/types";

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Return the number that a quantity of Kubernetes stands for; null for none. */
export function numberOf(quantity: string | null): number | null {
  const [, digits, suffix = ""] = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(quantity ?? "") ?? [];
  const factor = suffix === "" ? 1 : SUFFIXES[suffix];
  const value = digits === undefined || factor === undefined ? Number.NaN : Number(digits) * factor;
  return Number.isFinite(value) ? value : null;
}

/** The parts of a bar of quota, from 0 to 1. Where more than the quota is used, the quota ends before the bar. */
export interface Shares {
  /** What this queue uses. */
  own: number;
  /** What other queues of the ClusterQueue use. */
  others: number;
  /** Where the quota ends. */
  limit: number;
}

/** Return the shares of a quota; null if quota and use are not known. */
export function sharesOf({ nominalQuota, used, usedByQueue }: Quota): Shares | null {
  const [quota, all, own] = [numberOf(nominalQuota), numberOf(used), numberOf(usedByQueue) ?? 0];
  if (quota === null || all === null) return null;
  const whole = Math.max(quota, all);
  if (whole === 0) return { own: 0, others: 0, limit: 1 };
  return { own: Math.min(own, all) / whole, others: Math.max(0, all - own) / whole, limit: quota / whole };
}

/** Say the use of a quota: `12 of 64, 62 by all queues, 30 free in the cohort`. */
export function usageText({ nominalQuota, used, usedByQueue, cohortFree }: Quota): string {
  if (nominalQuota === null && used === null && usedByQueue === null) return "not known";
  const own = usedByQueue ?? "an unknown part";
  const all = used === null || used === usedByQueue ? "" : `, ${used} by all queues`;
  const lent = cohortFree ? `, ${cohortFree} free in the cohort` : "";
  return `${own} of ${nominalQuota ?? "an unknown quota"}${all}${lent}`;
}

/** Say the position of a job that waits in its queue, if Kueue reports it. */
export function positionText({ clusterQueue, pendingJobs, pendingJobsOmitted }: JobQueue, uid: string): string {
  const found = pendingJobs.find((job) => job.uid === uid);
  if (found === undefined) return pendingJobsOmitted > 0 ? `after the first ${pendingJobs.length}` : "not known";
  return found.position === null ? "not reported by Kueue" : `${found.position} in the ClusterQueue ${clusterQueue}`;
}

/** Say why there is no queue to show, or why some may be missing; empty if all are known. */
export function absenceText({ kueue: { state, message } }: Pick<JobQueuePage, "kueue">): string {
  const cause = message === "" ? "" : ` ${message}`;
  switch (state) {
    case "listed":
      return message;
    case "absent":
      return `The cluster does not serve Kueue, or jobgate does not use it: jobs run without queues.${cause}`;
    case "denied":
      return `jobgate may not read Kueue's objects.${cause}`;
    default:
      return `jobgate has not listed the queues yet.${cause}`;
  }
}
