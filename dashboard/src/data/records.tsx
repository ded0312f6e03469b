import type { Condition, KubernetesEvent } from "../api/types";
import { Actor } from "../ui/actor";
import { actorOf } from "../ui/actors";
import { type DataColumn, DataTable } from "../ui/data-table";
import { PhaseBadge } from "../ui/phases";
import { When } from "../ui/when";

/** An entry of the history of a SampleSet or a SampleJob. */
interface Entry {
  seq: number;
  at: string;
  phase: string;
  reason: string;
  message: string;
  actor: string;
  actorId: string | null;
}

export function ConditionTable({ conditions }: { conditions: readonly Condition[] }) {
  return (
    <DataTable
      caption="Conditions"
      columns={CONDITIONS}
      rows={conditions}
      keyOf={(condition) => condition.type}
      empty="There is no condition yet."
    />
  );
}

export function HistoryTable({ entries }: { entries: readonly Entry[] }) {
  return (
    <DataTable
      caption="History, the newest entry first"
      columns={HISTORY}
      rows={entries.toSorted((a, b) => b.seq - a.seq)}
      keyOf={(entry) => String(entry.seq)}
      empty="Nothing has happened yet."
    />
  );
}

export function EventTable({ events }: { events: readonly KubernetesEvent[] }) {
  return (
    <DataTable
      caption="Events"
      columns={EVENTS}
      rows={events}
      keyOf={(event, index) => `${event.reason} ${event.firstSeenAt} ${index}`}
      empty="There is no event."
    />
  );
}

const CONDITIONS: readonly DataColumn<Condition>[] = [
  { title: "Condition", cell: (condition) => condition.type },
  { title: "Status", cell: (condition) => condition.status },
  { title: "Reason", className: "wrap", cell: (condition) => condition.reason },
  { title: "Message", className: "wrap", cell: (condition) => condition.message },
  { title: "Since", cell: (condition) => <When time={condition.lastTransitionTime} /> },
];

const HISTORY: readonly DataColumn<Entry>[] = [
  { title: "Time", cell: (entry) => <When time={entry.at} /> },
  { title: "Phase", cell: (entry) => <PhaseBadge phase={entry.phase} /> },
  { title: "Reason", className: "wrap", cell: (entry) => entry.reason },
  { title: "Message", className: "wrap", cell: (entry) => entry.message },
  { title: "By", className: "wrap", cell: (entry) => <Actor actor={actorOf(entry)} /> },
];

const EVENTS: readonly DataColumn<KubernetesEvent>[] = [
  { title: "Last seen", cell: (event) => <When time={event.lastSeenAt} /> },
  { title: "Type", cell: (event) => event.type },
  { title: "Reason", className: "wrap", cell: (event) => event.reason },
  { title: "Message", className: "wrap", cell: (event) => event.message },
  { title: "Count", cell: (event) => event.count },
];
