import type { HistoryEntry, Job } from "../api/types";
import { Actor } from "../ui/actor";
import { actorOf } from "../ui/actors";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { PhaseBadge } from "../ui/phases";
import { When } from "../ui/when";
import { ReplicaLink } from "./replicas/replica-link";
import { useHistory } from "./use-job-query";

export function HistoryTab({ job }: { job: Job }) {
  const { data, error, refetch } = useHistory(job.uid);
  return (
    <section className="job-section">
      <h2>History</h2>
      <p className="secondary">What happened, when, why, and by whom; the newest entry first.</p>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the history" />}
      {data !== undefined && (
        <DataTable
          caption="History, the newest entry first"
          columns={COLUMNS}
          rows={data.toReversed()}
          keyOf={(entry) => String(entry.seq)}
          empty="Nothing has happened yet."
        />
      )}
    </section>
  );
}

const COLUMNS: readonly DataColumn<HistoryEntry>[] = [
  { title: "Time", className: "time", cell: (entry) => <When time={entry.at} /> },
  { title: "Phase", cell: (entry) => <PhaseBadge phase={entry.phase} /> },
  { title: "Reason", cell: (entry) => entry.reason },
  { title: "Message", className: "wrap", cell: (entry) => entry.message },
  {
    title: "Replica",
    cell: (entry) => <ReplicaLink task={entry.task} rank={entry.rank} attempt={entry.attempt} />,
  },
  { title: "By", className: "wrap", cell: (entry) => <Actor actor={actorOf(entry)} /> },
];
