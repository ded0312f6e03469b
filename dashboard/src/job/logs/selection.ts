import type { Attempt, Container, Replica } from "../../api/types";
import { replicaName } from "../names";

/** What the parameters of the address select. Null is the default: all replicas, the newest log, and so on. */
export interface Selection {
  task: string | null;
  rank: number | null;
  attempt: number | null;
  container: string | null;
  /** The text that is searched for. */
  search: string;
  /** The first byte of the line of the whole log that is shown; null for the end of the log. */
  at: number | null;
  /** The time from which the whole log is shown; null for the byte `at`, or the end. */
  time: string | null;
}

/** The log that is read: of all replicas together, of those of a task, or of one container of a replica. */
export type Target =
  | { kind: "merged"; task: string | null }
  | { kind: "one"; task: string; rank: number; attempt: number; container: string | null };

export function selectionOf(query: URLSearchParams): Selection {
  return {
    task: query.get("task"),
    rank: numberOf(query.get("rank")),
    attempt: numberOf(query.get("attempt")),
    container: query.get("container"),
    search: query.get("q") ?? "",
    at: byteOf(query.get("at")),
    time: query.get("time"),
  };
}

/** Return the query of the address with this selection. Its other parameters stay. */
export function withSelection(query: URLSearchParams, selection: Selection): URLSearchParams {
  const changed = new URLSearchParams(query);
  const { task, rank, attempt, container, search, at, time } = selection;
  const values = { task, rank, attempt, container, q: search === "" ? null : search, at, time };
  for (const [name, value] of Object.entries(values)) {
    if (value === null) changed.delete(name);
    else changed.set(name, String(value));
  }
  return changed;
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function byteOf(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Return the tasks of a job in the order of its replicas. */
export function tasksOf(replicas: readonly Replica[]): string[] {
  return [...new Set(replicas.map((replica) => replica.task))];
}

/** Return the log to read; null if the job has no replicas. One replica has nothing to merge. */
export function targetOf(selection: Selection, replicas: readonly Replica[]): Target | null {
  const tasks = tasksOf(replicas);
  const task = tasks.find((each) => each === selection.task) ?? null;
  const fitting = replicas.filter((replica) => task === null || replica.task === task);
  const named = selection.rank !== null && (task !== null || tasks.length === 1);
  const chosen = named ? fitting.find((replica) => replica.rank === selection.rank) : undefined;
  const replica = chosen ?? (fitting.length === 1 ? fitting[0] : undefined);
  if (replica === undefined) return replicas.length === 0 ? null : { kind: "merged", task };
  const attempt = replica.attempts.find((each) => each.number === selection.attempt);
  return {
    kind: "one",
    task: replica.task,
    rank: replica.rank,
    attempt: attempt?.number ?? defaultAttempt(replica),
    container: selection.container,
  };
}

/** Return the attempt whose log is shown first: the newest one that has a log. */
export function defaultAttempt({ logAttempt, attempt }: Replica): number {
  return logAttempt ?? attempt;
}

/** Return what identifies a log: another key is another log. */
export function keyOf(target: Target): string {
  if (target.kind === "merged") return JSON.stringify([target.task]);
  return JSON.stringify([target.task, target.rank, target.attempt, target.container]);
}

/**
 * Return the containers of an attempt by name, the one whose log is shown first at the beginning. Init containers come
 * after the others, which are of more interest.
 */
export function containersOf(replica: Replica, attempt: number): string[] {
  const found = replica.attempts.find((each) => each.number === attempt);
  const containers = found === undefined || found.containers.length === 0 ? replica.containers : found.containers;
  const place = ({ name, init }: Container) => (name === found?.logContainer ? -1 : Number(init));
  return [...containers].sort((a, b) => place(a) - place(b)).map((container) => container.name);
}

export function attemptText(attempt: Attempt, isCurrent: boolean): string {
  const exit = attempt.exitCode === null ? "" : `, exit code ${attempt.exitCode}`;
  return `Attempt ${attempt.number}${isCurrent ? " (current)" : ""}: ${attempt.outcome ?? attempt.phase}${exit}`;
}

/**
 * Return the replicas that match every word of the text: a part of the name, as `worker[3]` or `worker 3`, of the
 * phase, or of the node.
 */
export function matchingReplicas(replicas: readonly Replica[], text: string): Replica[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return replicas.filter((replica) => {
    const fields = [replicaName(replica.task, replica.rank), replica.phase, replica.node ?? ""].map((each) =>
      each.toLowerCase(),
    );
    return words.every((word) =>
      /^\d+$/.test(word) ? String(replica.rank).startsWith(word) : fields.some((field) => field.includes(word)),
    );
  });
}
