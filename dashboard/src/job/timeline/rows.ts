/** The rows of the timeline: the replicas of a job with a bar for each attempt. Times are milliseconds. */
import type { Attempt, Replica } from "../../api/types";
import { duration } from "../../ui/durations";
import { exitText, replicaKey, replicaName } from "../names";

export type Ending = "succeeded" | "failed" | "disrupted" | "stopped";
export type SegmentKind = "waiting" | "running" | "unknown" | Ending;

/** A part of a bar. `end` is null while it grows. */
export interface Segment {
  kind: SegmentKind;
  start: number;
  end: number | null;
}

/** An attempt: it waits from the creation of its pod until its start, and then runs. */
export interface Bar {
  attempt: number;
  segments: readonly Segment[];
  /** How it ended; null while it has not. */
  ending: Ending | null;
  start: number;
  end: number | null;
}

export interface ReplicaRow {
  type: "replica";
  key: string;
  name: string;
  replica: Replica;
  bars: readonly Bar[];
  /** What the row shows, for readers who do not see it. */
  text: string;
}

export interface GroupRow {
  type: "group";
  key: string;
  task: string;
  size: number;
  isOpen: boolean;
  /** `3 replicas: 2 running, 1 failed`. */
  text: string;
  steps: readonly Step[];
}

export type TimelineRow = ReplicaRow | GroupRow;

/** The number of running replicas from this time on. */
export interface Step {
  at: number;
  count: number;
}

/** The replicas of one task. */
export interface Group {
  task: string;
  rows: readonly ReplicaRow[];
  text: string;
  steps: readonly Step[];
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  // outcomes
  Succeeded: "succeeded",
  Failed: "failed",
  Disrupted: "disrupted",
  Stopped: "stopped",
  // a phase that is no outcome
  Deleted: "stopped",
};

/** Up to this number of replicas, tasks need no headings: the names of the replicas contain them. */
const UNGROUPED = 10;
/** The number of attempts that the text of a row describes. The details of the replica have all. */
const SPOKEN = 3;

export function groupsOf(replicas: readonly Replica[]): Group[] {
  const byTask = new Map<string, Replica[]>();
  for (const replica of replicas) {
    const members = byTask.get(replica.task);
    if (members === undefined) byTask.set(replica.task, [replica]);
    else members.push(replica);
  }
  return [...byTask].map(([task, members]) => {
    const rows = members.map(replicaRow);
    return { task, rows, text: summary(members), steps: runningSteps(rows) };
  });
}

/** Return the rows to show: those of open groups, and with `onlyTroubled` only those with a failure or disruption. */
export function timelineRows(
  groups: readonly Group[],
  closed: ReadonlySet<string>,
  onlyTroubled: boolean,
): TimelineRow[] {
  const size = groups.reduce((sum, group) => sum + group.rows.length, 0);
  const isGrouped = size > UNGROUPED;
  return groups.flatMap(({ task, rows, text, steps }): readonly TimelineRow[] => {
    const shown = onlyTroubled ? rows.filter(isTroubled) : rows;
    if (!isGrouped) return shown;
    if (shown.length === 0) return [];
    const isOpen = !closed.has(task);
    const group: GroupRow = { type: "group", key: `task ${task}`, task, size: rows.length, isOpen, text, steps };
    return isOpen ? [group, ...shown] : [group];
  });
}

export function isTroubled({ bars }: ReplicaRow): boolean {
  return bars.some(({ ending }) => ending === "failed" || ending === "disrupted");
}

export function replicaRow(replica: Replica): ReplicaRow {
  const { task, rank, attempts } = replica;
  const bars = attempts.flatMap((attempt, index) => barOf(attempt, attempts[index + 1]) ?? []);
  const name = replicaName(task, rank);
  return { type: "replica", key: replicaKey(task, rank), name, replica, bars, text: rowText(name, replica) };
}

/** Return the bar of an attempt; null if it has no pod yet. */
function barOf(attempt: Attempt, next: Attempt | undefined): Bar | null {
  const created = timeOf(attempt.createdAt) ?? timeOf(attempt.startedAt);
  if (created === null) return null;
  const started = timeOf(attempt.startedAt);
  const ending = ENDINGS[attempt.outcome ?? attempt.phase] ?? null;
  const known = timeOf(attempt.finishedAt) ?? (next === undefined ? null : timeOf(next.createdAt));
  // The end of a pod that vanished may be unknown. Its bar must not grow.
  const latest = ending === null && next === undefined ? null : Math.max(created, started ?? created);
  const end = known === null ? latest : Math.max(known, created);
  const kind = ending ?? (attempt.phase === "Unknown" ? "unknown" : "running");
  const segments: Segment[] =
    started === null
      ? [{ kind: kind === "unknown" ? "unknown" : "waiting", start: created, end }]
      : [
          { kind: "waiting", start: created, end: started },
          { kind, start: started, end },
        ];
  return { attempt: attempt.number, segments, ending, start: created, end };
}

/** Count the running replicas over time. */
export function runningSteps(rows: readonly ReplicaRow[]): Step[] {
  const changes: [number, number][] = [];
  for (const { bars } of rows) {
    for (const { segments } of bars) {
      const ran = segments.find(({ kind }) => kind !== "waiting");
      if (ran === undefined) continue;
      changes.push([ran.start, 1]);
      if (ran.end !== null) changes.push([ran.end, -1]);
    }
  }
  changes.sort(([a], [b]) => a - b);
  const steps: Step[] = [];
  let count = 0;
  for (const [at, change] of changes) {
    count += change;
    if (steps.at(-1)?.at === at) steps.pop();
    steps.push({ at, count });
  }
  return steps;
}

function rowText(name: string, replica: Replica): string {
  const { attempts, phase } = replica;
  if (attempts.length === 0) return `${name}, ${phase}, no attempt`;
  const count = attempts.length === 1 ? "1 attempt" : `${attempts.length} attempts`;
  const latest = attempts.length > SPOKEN ? ", the latest" : "";
  return `${name}, ${phase}, ${count}${latest}: ${attempts.slice(-SPOKEN).map(attemptText).join("; ")}`;
}

/** Say what became of an attempt: `attempt 1 failed after 12s, exited with 137 (OOMKilled)`. */
export function attemptText(attempt: Attempt): string {
  const ending = ENDINGS[attempt.outcome ?? attempt.phase];
  const state = ending ?? attempt.phase.toLowerCase();
  const [start, end] = [timeOf(attempt.startedAt), timeOf(attempt.finishedAt)];
  const length = start === null || end === null ? "" : ` after ${duration(end - start)}`;
  const exit = ending === undefined || ending === "succeeded" ? "" : exitText(attempt);
  return `attempt ${attempt.number} ${state}${length}${exit === "" ? "" : `, ${exit}`}`;
}

function summary(replicas: readonly Replica[]): string {
  const counts = new Map<string, number>();
  for (const { phase } of replicas) counts.set(phase, (counts.get(phase) ?? 0) + 1);
  const parts = [...counts].map(([phase, count]) => `${count} ${phase.toLowerCase()}`);
  return `${replicas.length} ${replicas.length === 1 ? "replica" : "replicas"}: ${parts.join(", ")}`;
}

export function timeOf(time: string | null): number | null {
  return time === null ? null : Date.parse(time);
}
