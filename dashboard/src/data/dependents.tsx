import type { Dependents, SampleSet } from "../api/types";
import { hashOf } from "../routing/location";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { PhaseBadge } from "../ui/phases";
import { OperationProgress } from "./operation-progress";
import { useDependents } from "./use-set";

type MountingJob = Dependents["jobs"][number];
type JobOfSet = Dependents["sampleJobs"][number];

/** What uses the set: running and ended sample jobs, and the jobs that mount its claim. */
export function DependentTables({ uid, set }: { uid: string; set: SampleSet }) {
  const { data, error, refetch } = useDependents(uid);
  return (
    <section>
      <h2>Sample jobs</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="what uses the set" />}
      {data !== undefined && (
        <>
          <DataTable
            caption="Sample jobs of the set, the newest first"
            columns={SAMPLE_JOBS}
            rows={data.sampleJobs}
            keyOf={(job) => job.uid}
            empty="No sample job concerns this set."
          />
          {data.sampleJobs.length > 0 && (
            <p>
              <a href={hashOf(["data"], { show: "jobs", set: set.name })}>
                Sample jobs of sets of this name, with messages
              </a>
            </p>
          )}
          <h2>Jobs that mount it</h2>
          <DataTable
            caption="Live jobs that mount the claim"
            columns={JOBS}
            rows={data.jobs}
            keyOf={(job) => job.uid}
            empty="No live job mounts the claim of this set."
          />
        </>
      )}
    </section>
  );
}

const SAMPLE_JOBS: readonly DataColumn<JobOfSet>[] = [
  { title: "Phase", cell: (job) => <PhaseBadge phase={job.phase} /> },
  {
    title: "Name",
    className: "wrap",
    cell: (job) => <a href={hashOf(["data"], { show: "jobs", open: job.uid })}>{job.name}</a>,
  },
  { title: "Type", cell: (job) => job.type },
  { title: "Progress", cell: (job) => <OperationProgress progress={job.progress} /> },
];

const JOBS: readonly DataColumn<MountingJob>[] = [
  { title: "Phase", cell: (job) => <PhaseBadge phase={job.phase} /> },
  { title: "Name", className: "wrap", cell: (job) => <a href={hashOf(["jobs", job.uid])}>{job.name}</a> },
  { title: "Kind", cell: (job) => job.kind },
];
