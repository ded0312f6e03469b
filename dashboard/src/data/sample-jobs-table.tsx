import { useMemo } from "react";
import { bodyOf } from "../api/client";
import type { SampleJobSummary } from "../api/types";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { LiveTable } from "../ui/live-table";
import { PhaseBadge } from "../ui/phases";
import { TextFilter } from "../ui/text-filter";
import type { Column } from "../ui/virtual-table";
import { Age, Length } from "../ui/when";
import { OperationProgress } from "./operation-progress";
import { Message } from "./sets-table";

interface SampleJobsTableProps {
  /** The name of the sample set whose jobs are shown; empty for all. */
  set: string;
  onSet: (set: string) => void;
  onOpen: (uid: string) => void;
}

export function SampleJobsTable({ set, onSet, onOpen }: SampleJobsTableProps) {
  return (
    <div className="view-list sample-jobs-table">
      <search className="filters">
        <TextFilter name="Sample set" hint="all" value={set} onChange={onSet} />
      </search>
      <LiveTable
        label="Sample jobs"
        changes={usePage().sampleJobChanges}
        reader={useSampleJobReader(set)}
        columns={useMemo(() => columnsFor(set), [set])}
        onOpen={(job) => onOpen(job.uid)}
        empty={
          <div className="empty">
            <p>
              {set === "" ? "There is no sample job." : `No sample job concerns a set of the name ${set}.`} A sample job
              syncs, warms up, removes or clears the data of a set.
            </p>
            <a href={hashOf(["submit"])}>Submit one</a>
          </div>
        }
      />
    </div>
  );
}

function useSampleJobReader(set: string): ListReader<SampleJobSummary> {
  const { client } = usePage().api;
  return useMemo(
    () => async (parameters, signal) => {
      const query = { ...(set !== "" && { set }), ...parameters, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/samplejobs", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: SampleJobSummary[]; nextPageToken: string | null };
    },
    [client, set],
  );
}

function columnsFor(set: string): readonly Column<SampleJobSummary>[] {
  return [
    { title: "Phase", className: "column-phase", cell: (job) => <PhaseBadge phase={job.status.phase} /> },
    {
      title: "Name",
      className: "column-name",
      cell: (job) => (
        <>
          <a href={hashOf(["data"], { show: "jobs", ...(set !== "" && { set }), open: job.uid })}>{job.name}</a>
          <span className="secondary">{job.namespace}</span>
        </>
      ),
    },
    { title: "Type", className: "column-kind", cell: (job) => job.status.type },
    { title: "Sample set", className: "column-replicas", cell: (job) => job.status.sampleSet },
    {
      title: "Progress",
      className: "column-progress",
      cell: (job) => <OperationProgress progress={job.status.progress} />,
    },
    { title: "Message", className: "column-cause", cell: (job) => <Message {...job.status} /> },
    {
      title: "Duration",
      className: "column-time",
      cell: (job) => <Length start={job.status.startedAt} end={job.status.finishedAt} />,
    },
    { title: "Age", className: "column-time", cell: (job) => <Age createdAt={job.createdAt} /> },
  ];
}
