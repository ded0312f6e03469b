import { CircleAlert, Info } from "lucide-react";
import type { Job, KubernetesEvent } from "../api/types";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { When } from "../ui/when";
import { ReplicaLink } from "./replicas/replica-link";
import { useEvents } from "./use-job-query";

export function EventsTab({ job }: { job: Job }) {
  const { data, error, refetch } = useEvents(job.uid);
  return (
    <section className="job-section">
      <h2>Events</h2>
      <p className="secondary">
        Why replicas are pending now, and the last events of the pods of ended attempts, as the cluster reported them.
      </p>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the events" />}
      {data !== undefined && (
        <DataTable
          caption="Events"
          columns={COLUMNS}
          rows={data}
          keyOf={(_, index) => String(index)}
          empty="No replica is pending, and no attempt has ended with events."
        />
      )}
    </section>
  );
}

const SOURCES: Readonly<Record<KubernetesEvent["source"], string>> = {
  pending: "pending now",
  evidence: "ended attempt",
  controller: "controller",
};

const COLUMNS: readonly DataColumn<KubernetesEvent>[] = [
  { title: "Last seen", className: "time", cell: (event) => <When time={event.lastSeenAt} /> },
  { title: "Type", cell: (event) => <EventType type={event.type} /> },
  { title: "Reason", cell: (event) => event.reason },
  { title: "Message", className: "wrap", cell: (event) => event.message },
  { title: "Count", cell: (event) => event.count },
  {
    title: "Replica",
    cell: (event) => <ReplicaLink task={event.task} rank={event.rank} attempt={event.attempt} />,
  },
  { title: "Source", cell: (event) => SOURCES[event.source] },
];

function EventType({ type }: { type: string }) {
  const isWarning = type === "Warning";
  const Icon = isWarning ? CircleAlert : Info;
  return (
    <span className={`badge tone-${isWarning ? "waiting" : "neutral"}`}>
      <Icon aria-hidden size={14} />
      {type}
    </span>
  );
}
