import type { AutoscalerRun } from "../../api/types";

type Decision = AutoscalerRun["decisions"][number];

/** A decision of the autoscaler about a job, which it may have repeated in the runs that followed. */
export interface RepeatedDecision {
  decision: Decision;
  /** The first and the last of the runs with this decision. */
  since: string;
  until: string;
  runs: number;
}

/** Return the decisions about a job, the newest first as the runs are, with equal ones in a row as one. */
export function decisionsAbout(uid: string, runs: readonly AutoscalerRun[]): RepeatedDecision[] {
  const found: RepeatedDecision[] = [];
  const newest = new Map<string, RepeatedDecision>();
  for (const { at, decisions } of runs) {
    for (const decision of decisions) {
      if (decision.uid !== uid) continue;
      const later = newest.get(decision.task);
      if (later !== undefined && isSame(later.decision, decision)) {
        later.since = at;
        later.runs += 1;
        continue;
      }
      const first = { decision, since: at, until: at, runs: 1 };
      newest.set(decision.task, first);
      found.push(first);
    }
  }
  return found;
}

/** A resize that was applied is an event of its own, also if the next run repeats it. */
function isSame(a: Decision, b: Decision): boolean {
  return (
    !a.applied &&
    !b.applied &&
    a.verdict === b.verdict &&
    a.fromReplicas === b.fromReplicas &&
    a.toReplicas === b.toReplicas &&
    a.refusal === b.refusal
  );
}
