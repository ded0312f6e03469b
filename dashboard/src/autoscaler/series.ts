/** The load of the cluster over the runs of the autoscaler, as columns of a chart. Pure. */
import type { AutoscalerRun } from "../api/types";
import { shareOf } from "./amounts";

export interface LoadSeries {
  /** Seconds since 1970, ascending. */
  times: number[];
  cpu: (number | null)[];
  memory: (number | null)[];
  maxLoad: (number | null)[];
  /** The share of CPU at the runs that resized a job; null at the others. */
  resized: (number | null)[];
}

/** `runs` may come in any order, and from overlapping pages. */
export function seriesOf(runs: readonly AutoscalerRun[]): LoadSeries {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const ordered = [...byId.values()].sort((a, b) => a.id - b.id);
  return {
    times: ordered.map((run) => Date.parse(run.at) / 1000),
    cpu: ordered.map((run) => run.capacity && shareOf(run.capacity, "cpu")),
    memory: ordered.map((run) => run.capacity && shareOf(run.capacity, "memory")),
    maxLoad: ordered.map((run) => run.settings.maxLoad),
    resized: ordered.map((run) =>
      run.capacity !== null && run.decisions.some((decision) => decision.applied) ? shareOf(run.capacity, "cpu") : null,
    ),
  };
}

/** What a run did, in a few words. */
export function runText(run: AutoscalerRun): string {
  if (run.error !== null) return `no decision: ${run.error}`;
  const changed = run.decisions.filter((decision) => decision.toReplicas !== decision.fromReplicas);
  const applied = changed.filter((decision) => decision.applied).length;
  if (changed.length === 0) return run.decisions.length === 0 ? "no elastic job" : "no change";
  if (applied === changed.length) return applied === 1 ? "1 job resized" : `${applied} jobs resized`;
  const not = changed.length - applied;
  return applied === 0 ? `${not} not resized` : `${applied} resized, ${not} not resized`;
}

/** Whether a run changed something, or would have. Others say the same as the run before. */
export function isNotable(run: AutoscalerRun): boolean {
  return run.error !== null || run.decisions.some((decision) => decision.toReplicas !== decision.fromReplicas);
}

const MINUTE = 60;

/** The times that the chart shows, in seconds: those of the runs, and a minute on both sides of a single run. */
export function timeRange(first: number, last: number): [number, number] {
  return first === last ? [first - MINUTE, last + MINUTE] : [first, last];
}
