import type { Job, Replica } from "../../api/types";
import { pushQuery, useLocation } from "../../routing/use-location";
import { Chips } from "../../ui/chips";
import { ErrorNote, Loading } from "../../ui/errors";
import { PhaseBadge, toneOf } from "../../ui/phases";
import { type Column, VirtualTable } from "../../ui/virtual-table";
import { Length, When } from "../../ui/when";
import { replicaKey } from "../names";
import { useReplicas } from "../use-job-query";
import { causeText } from "./cause";
import { ReplicaLink } from "./replica-link";
import { countedBy, filtered, filtersOf, type ReplicaFilters, toggledFilter, withSelection } from "./selection";

/** The replicas of the job in a table. Opening one shows its details beside the table. */
export function ReplicasTab({ job }: { job: Job }) {
  const { data, error, refetch } = useReplicas(job.uid);
  const { query } = useLocation();
  const filters = filtersOf(query);
  const shown = data === undefined ? [] : filtered(data, filters);
  const open = ({ task, rank }: Replica) => pushQuery(withSelection(query, { task, rank, attempt: null }));
  return (
    <section className="job-replicas">
      <h2 className="visually-hidden">Replicas</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the replicas" />}
      {data !== undefined && <ReplicaFilterBar replicas={data} filters={filters} query={query} />}
      {data !== undefined && shown.length === 0 && (
        <p className="empty">{data.length === 0 ? "The job has no replicas." : "No replica matches the filters."}</p>
      )}
      {shown.length > 0 && (
        <VirtualTable
          label="Replicas"
          columns={COLUMNS}
          rows={shown}
          keyOf={({ task, rank }) => replicaKey(task, rank)}
          onOpen={open}
        />
      )}
    </section>
  );
}

function restartsOf({ restartCount, restartsInPlace }: Replica): string {
  return restartsInPlace === 0 ? String(restartCount) : `${restartCount} (+${restartsInPlace} in place)`;
}

interface ReplicaFilterBarProps {
  replicas: readonly Replica[];
  filters: ReplicaFilters;
  query: URLSearchParams;
}

function ReplicaFilterBar({ replicas, filters, query }: ReplicaFilterBarProps) {
  const tasks = countedBy(replicas, "task");
  // The counts of phases are those of the chosen tasks.
  const phases = countedBy(filtered(replicas, { ...filters, phase: [] }), "phase");
  const toggle = (name: keyof ReplicaFilters) => (value: string) => pushQuery(toggledFilter(query, name, value));
  return (
    <search className="filters">
      <div className="filter-chips">
        {Object.keys(tasks).length > 1 && (
          <Chips
            label="Task"
            values={Object.keys(tasks)}
            chosen={filters.task}
            counts={tasks}
            onToggle={toggle("task")}
          />
        )}
        <Chips
          label="Phase"
          values={[...new Set([...Object.keys(phases), ...filters.phase])]}
          chosen={filters.phase}
          counts={phases}
          onToggle={toggle("phase")}
          className={toneOf}
        />
      </div>
    </search>
  );
}

const COLUMNS: readonly Column<Replica>[] = [
  {
    title: "Replica",
    className: "replica-name",
    cell: ({ task, rank, leaving }) => (
      <>
        <ReplicaLink task={task} rank={rank} />
        {leaving && <span className="secondary"> leaving</span>}
      </>
    ),
  },
  { title: "Phase", className: "replica-phase", cell: ({ phase }) => <PhaseBadge phase={phase} /> },
  { title: "Attempt", className: "replica-number", cell: ({ attempt }) => attempt },
  { title: "Restarts", className: "replica-number", cell: restartsOf },
  { title: "Disruptions", className: "replica-number", cell: ({ disruptions }) => disruptions },
  { title: "Node", className: "replica-node", cell: ({ node }) => node ?? "–" },
  { title: "Started", className: "replica-started", cell: ({ startedAt }) => <When time={startedAt} /> },
  {
    title: "Duration",
    className: "replica-duration",
    cell: ({ startedAt, finishedAt }) => <Length start={startedAt} end={finishedAt} />,
  },
  { title: "Exit code", className: "replica-exit", cell: ({ exitCode }) => exitCode },
  { title: "Reason", className: "replica-reason", cell: (replica) => <Reason replica={replica} /> },
];

function Reason({ replica }: { replica: Replica }) {
  const text = causeText(replica);
  return <span title={text}>{text}</span>;
}
