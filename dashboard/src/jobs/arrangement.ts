/** How the table of jobs is arranged: its order and its columns of labels, which the address shows. Pure. */
import type { JobSummary } from "../api/types";
import { progressOf } from "../ui/progress";
import { JOB_PHASES } from "./vocabulary";

const COMPARISONS = {
  phase: by((job) => JOB_PHASES.indexOf(job.status.phase)),
  name: byText((job) => job.name),
  kind: byText((job) => job.kind),
  owner: byText((job) => `${job.createdBy} ${job.createdById}`),
  replicas: by(({ status }) => progressOf(status).done / Math.max(1, progressOf(status).needed)),
  duration: by(({ status: { startedAt, finishedAt } }, now) =>
    startedAt === null ? -1 : (finishedAt === null ? now : Date.parse(finishedAt)) - Date.parse(startedAt),
  ),
  age: by((job, now) => now - Date.parse(job.createdAt)),
} as const;

type Comparison = (one: JobSummary, other: JobSummary, now: number) => number;

/** A column by which the table can be sorted. */
export type SortColumn = keyof typeof COMPARISONS;
export const SORT_COLUMNS = Object.keys(COMPARISONS) as SortColumn[];

export interface Arrangement {
  /** Null: the newest jobs first, as the gateway lists them. */
  sort: { column: SortColumn; isDescending: boolean } | null;
  /** The keys of the labels that have columns. */
  labels: readonly string[];
}

export function arrangementOf(query: URLSearchParams): Arrangement {
  const [, minus = "", name = ""] = /^(-?)(\w+)$/.exec(query.get("sort") ?? "") ?? [];
  const column = SORT_COLUMNS.find((each) => each === name);
  return {
    sort: column === undefined ? null : { column, isDescending: minus === "-" },
    labels: [...new Set(query.getAll("column").filter(Boolean))],
  };
}

/** Add the parameters of the arrangement to those of the filters. */
export function withArrangement(query: URLSearchParams, { sort, labels }: Arrangement): URLSearchParams {
  const whole = new URLSearchParams(query);
  if (sort !== null) whole.set("sort", `${sort.isDescending ? "-" : ""}${sort.column}`);
  for (const label of labels) whole.append("column", label);
  return whole;
}

/** Return the order after a press on the heading of a column: ascending, descending, and the order of the gateway. */
export function pressed(sort: Arrangement["sort"], column: SortColumn): Arrangement["sort"] {
  if (sort?.column !== column) return { column, isDescending: false };
  return sort.isDescending ? null : { column, isDescending: true };
}

/** Return the comparison of an order. `now` is in milliseconds. Of equal jobs, the newer one is first. */
export function comparisonOf(
  { column, isDescending }: NonNullable<Arrangement["sort"]>,
  now: number,
): (one: JobSummary, other: JobSummary) => number {
  const compare = COMPARISONS[column];
  return (one, other) =>
    (isDescending ? compare(other, one, now) : compare(one, other, now)) ||
    other.createdAt.localeCompare(one.createdAt) ||
    other.uid.localeCompare(one.uid);
}

function by(value: (job: JobSummary, now: number) => number): Comparison {
  return (one, other, now) => value(one, now) - value(other, now);
}

function byText(value: (job: JobSummary) => string): Comparison {
  return (one, other) => value(one).localeCompare(value(other), "en", { numeric: true });
}
