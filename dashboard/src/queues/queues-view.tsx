import type { JobQueue } from "../api/types";
import { hashOf } from "../routing/location";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { thousands } from "../ui/numbers";
import { QueueState } from "./queue-state";
import { absenceText } from "./queues";
import { Legend, QuotaBars } from "./quota-bars";
import { useQueues } from "./use-queues";

/** The queues of Kueue: how much of their quota is in use, and how many jobs wait. */
export function QueuesView() {
  const { data, error, refetch } = useQueues();
  const absence = data === undefined ? "" : absenceText(data);
  return (
    <div className="view view-page queues">
      <h1>Queues</h1>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the queues" />}
      {absence !== "" && <p className="note tone-waiting">{absence}</p>}
      {data !== undefined && (data.items.length > 0 || data.kueue.state === "listed") && (
        <DataTable
          caption="Queues"
          columns={COLUMNS}
          rows={data.items}
          keyOf={(queue) => `${queue.namespace}/${queue.name}`}
          empty="There is no queue in the namespaces that you may see."
        />
      )}
      {data !== undefined && data.nextPageToken !== null && (
        <p className="secondary">These are the first {thousands(data.items.length)} queues.</p>
      )}
      {data !== undefined && data.items.length > 0 && <Legend />}
    </div>
  );
}

const COLUMNS: readonly DataColumn<JobQueue>[] = [
  {
    title: "Queue",
    className: "queue-name wrap",
    cell: ({ namespace, name }) => (
      <>
        <a href={hashOf(["queues", namespace, name])}>{name}</a> <span className="secondary">{namespace}</span>
      </>
    ),
  },
  { title: "ClusterQueue", className: "wrap", cell: (queue) => queue.clusterQueue },
  { title: "State", className: "wrap", cell: (queue) => <QueueState queue={queue} /> },
  { title: "Pending", className: "time", cell: (queue) => thousands(queue.pending) },
  { title: "Admitted", className: "time", cell: (queue) => thousands(queue.admitted) },
  { title: "Quota in use", className: "queue-quotas", cell: (queue) => <QuotaBars resources={queue.resources} /> },
];
