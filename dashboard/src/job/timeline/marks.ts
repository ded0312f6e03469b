/** What happened to the whole job, for the head of the timeline. Times are milliseconds, places are pixels. */
import type { HistoryEntry, Job, ScaleRecord } from "../../api/types";
import { actorOf, actorText } from "../../ui/actors";
import { placeOf, type Range } from "./axis";

export interface Mark {
  at: number;
  kind: "scale" | "request" | "phase";
  /** A few characters: `worker 2 → 3`. */
  label: string;
  detail: string;
}

/** A part of time in which the job had one phase. `end` is null while it lasts. */
export interface PhaseSpan {
  phase: string;
  start: number;
  end: number | null;
}

/** Marks that are too close to each other for separate labels. */
export interface PlacedMark {
  x: number;
  label: string;
  marks: readonly Mark[];
}

/** The entries of the history that concern the whole job and are marks, with their labels. */
const LABELS: Readonly<Record<string, string>> = {
  PauseRequested: "pause",
  Paused: "paused",
  ResumeRequested: "resume",
  CancelRequested: "cancel",
  DeleteRequested: "delete",
};
const NEAR = 26;

export function marksOf(records: readonly ScaleRecord[], history: readonly HistoryEntry[]): Mark[] {
  const marks = [...records.map(scaleMark), ...history.flatMap((entry) => historyMark(entry) ?? [])];
  return marks.sort((a, b) => a.at - b.at);
}

function scaleMark(record: ScaleRecord): Mark {
  const { task, fromReplicas, toReplicas, reason, outcome, message } = record;
  const because = reason === "" ? "" : ` (${reason})`;
  const failed = message === "" ? "" : `: ${message}`;
  return {
    at: Date.parse(record.requestedAt),
    kind: "scale",
    label: `${task} ${fromReplicas} → ${toReplicas}`,
    detail: `${actorText(actorOf(record))} scaled ${task} from ${fromReplicas} to ${toReplicas}${because}, ${outcome ?? "in progress"}${failed}`,
  };
}

function historyMark(entry: HistoryEntry): Mark | null {
  const { reason, at, message, task } = entry;
  const label = LABELS[reason];
  if (label === undefined || task !== null) return null;
  const kind = reason.endsWith("Requested") ? "request" : "phase";
  const by = actorText(actorOf(entry));
  return { at: Date.parse(at), kind, label, detail: `${reason} by ${by}${message === "" ? "" : `: ${message}`}` };
}

/** Return the phases of the job over time. */
export function phaseSpans(job: Pick<Job, "createdAt">, history: readonly HistoryEntry[]): PhaseSpan[] {
  const spans: PhaseSpan[] = [{ phase: "Queued", start: Date.parse(job.createdAt), end: null }];
  for (const { phase, at } of history) {
    const last = spans.at(-1);
    if (last === undefined || last.phase === phase) continue;
    last.end = Math.max(last.start, Date.parse(at));
    spans.push({ phase, start: last.end, end: null });
  }
  return spans.filter(({ start, end }) => end === null || end > start);
}

/** Return the marks within the range, those that are close together as one. */
export function placedMarks(marks: readonly Mark[], range: Range, width: number): PlacedMark[] {
  const placed: { x: number; marks: Mark[] }[] = [];
  for (const mark of marks) {
    const x = placeOf(mark.at, range, width);
    if (x < 0 || x > width) continue;
    const last = placed.at(-1);
    if (last !== undefined && x - last.x < NEAR) last.marks.push(mark);
    else placed.push({ x, marks: [mark] });
  }
  return placed.map(({ x, marks: close }) => ({ x, marks: close, label: closeLabel(close) }));
}

function closeLabel(marks: readonly Mark[]): string {
  const first = marks[0]?.label ?? "";
  return marks.length === 1 ? first : `${first} +${marks.length - 1}`;
}
