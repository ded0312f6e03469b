/** The replica and the filters that the address of a job's view selects. */
import type { Replica } from "../../api/types";
import { replicaKey } from "../names";

/** The replica whose details are shown, and the attempt that comes first in them; null for the newest. */
export interface Selection {
  task: string;
  rank: number;
  attempt: number | null;
}

export interface ReplicaFilters {
  task: readonly string[];
  phase: readonly string[];
}

export function selectionOf(query: URLSearchParams): Selection | null {
  const value = query.get("replica") ?? "";
  const slash = value.lastIndexOf("/");
  const rank = value.slice(slash + 1);
  if (slash < 1 || !/^\d+$/.test(rank)) return null;
  const attempt = query.get("attempt") ?? "";
  return { task: value.slice(0, slash), rank: Number(rank), attempt: /^\d+$/.test(attempt) ? Number(attempt) : null };
}

/** Return the query that selects a replica, or none, and is otherwise the same. */
export function withSelection(query: URLSearchParams, selection: Selection | null): URLSearchParams {
  const changed = new URLSearchParams(query);
  changed.delete("replica");
  changed.delete("attempt");
  if (selection === null) return changed;
  changed.set("replica", replicaKey(selection.task, selection.rank));
  if (selection.attempt !== null) changed.set("attempt", String(selection.attempt));
  return changed;
}

export function filtersOf(query: URLSearchParams): ReplicaFilters {
  return { task: query.getAll("task"), phase: query.getAll("phase") };
}

/** Return the query with the value of a filter added, or removed if it is present. */
export function toggledFilter(query: URLSearchParams, name: keyof ReplicaFilters, value: string): URLSearchParams {
  const changed = new URLSearchParams(query);
  if (changed.has(name, value)) changed.delete(name, value);
  else changed.append(name, value);
  return changed;
}

export function filtered(replicas: readonly Replica[], { task, phase }: ReplicaFilters): Replica[] {
  return replicas.filter(
    (replica) =>
      (task.length === 0 || task.includes(replica.task)) && (phase.length === 0 || phase.includes(replica.phase)),
  );
}

/** Count the replicas by a property, in the order in which its values occur. */
export function countedBy(replicas: readonly Replica[], property: "task" | "phase"): Record<string, string> {
  const counts = new Map<string, number>();
  for (const replica of replicas) counts.set(replica[property], (counts.get(replica[property]) ?? 0) + 1);
  return Object.fromEntries([...counts].map(([value, count]) => [value, String(count)]));
}
