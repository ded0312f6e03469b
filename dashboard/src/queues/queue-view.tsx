import { ApiError } from "../api/problems";
import type { JobQueue, QueuedJob } from "../api/types";
import { hashOf } from "../routing/location";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { Fact, Facts } from "../ui/fact";
import { thousands } from "../ui/numbers";
import { When } from "../ui/when";
import { QueueState } from "./queue-state";
import { Legend, QuotaBars } from "./quota-bars";
import { useQueue } from "./use-queues";

/** One queue: its quota, how much of it is in use, and the jobs that wait in their order. */
export function QueueView({ namespace, name }: { namespace: string; name: string }) {
  const { data, error, refetch } = useQueue(namespace, name);
  const isAbsent = error instanceof ApiError && error.status === 404;
  return (
    <div className="view view-page queues">
      <a href={hashOf(["queues"])}>All queues</a>
      <h1>
        {name} <span className="secondary">{namespace}</span>
      </h1>
      {isAbsent && <p>The namespace has no such queue.</p>}
      {error !== null && !isAbsent && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the queue" />}
      {data !== undefined && !isAbsent && <Parts queue={data} />}
    </div>
  );
}

function Parts({ queue }: { queue: JobQueue }) {
  const { namespace, name, clusterQueue, cohort, pending, admitted, pendingJobs, pendingJobsOmitted } = queue;
  return (
    <>
      <Facts>
        <Fact name="State">
          <QueueState queue={queue} />
        </Fact>
        <Fact name="ClusterQueue">{clusterQueue}</Fact>
        {cohort && <Fact name="Cohort">{cohort}, whose ClusterQueues lend each other quota</Fact>}
        <Fact name="Workloads">
          {thousands(pending)} pending, {thousands(admitted)} admitted, of all clients of Kueue
        </Fact>
        <Fact name="Jobs">
          <a href={hashOf(["jobs"], { namespace, queue: name })}>All jobs of this queue</a>
        </Fact>
      </Facts>
      <section>
        <h2>Quota</h2>
        <QuotaBars resources={queue.resources} hasFlavors />
        {queue.resources.length > 0 && <Legend />}
      </section>
      <section>
        <h2>Pending jobs</h2>
        <DataTable
          caption="Pending jobs"
          columns={JOBS}
          rows={pendingJobs}
          keyOf={(job) => job.uid}
          empty="No job waits in this queue."
        />
        {pendingJobs.some((job) => job.position === null) && <p className="secondary">{UNTOLD}</p>}
        {pendingJobsOmitted > 0 && (
          <p className="secondary">{thousands(pendingJobsOmitted)} further jobs wait after these.</p>
        )}
      </section>
    </>
  );
}

const UNTOLD =
  "Kueue does not report the position of all jobs. Those without one are in the order of priority and age.";

const JOBS: readonly DataColumn<QueuedJob>[] = [
  { title: "Position", className: "time", cell: (job) => job.position ?? "–" },
  { title: "Job", className: "queue-name wrap", cell: (job) => <a href={hashOf(["jobs", job.uid])}>{job.name}</a> },
  { title: "Kind", cell: (job) => job.kind },
  { title: "Priority", className: "time", cell: (job) => job.priority },
  { title: "Queued", className: "time", cell: (job) => <When time={job.since} /> },
  {
    title: "Waits for",
    className: "wrap",
    cell: (job) => (
      <>
        <strong>{job.code}</strong>
        {job.message !== "" && `: ${job.message}`}
      </>
    ),
  },
];
