import { useCallback, useEffect, useMemo, useState } from "react";
import { bodyOf } from "../api/client";
import type { SampleJobSummary } from "../api/types";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { ErrorNote, Loading } from "../ui/errors";
import { PhaseBadge } from "../ui/phases";
import { useLiveList } from "../ui/use-live-list";
import { type Column, VirtualTable } from "../ui/virtual-table";
import { Length } from "../ui/when";
import { OperationProgress } from "./operation-progress";
import { Age, Message } from "./sets-table";

const PAGE_SIZE = 200;

interface SampleJobsTableProps {
  /** The name of the sample set whose jobs are shown; empty for all. */
  set: string;
  onSet: (set: string) => void;
  onOpen: (uid: string) => void;
}

export function SampleJobsTable({ set, onSet, onOpen }: SampleJobsTableProps) {
  const { state, list } = useLiveList(usePage().sampleJobChanges, useSampleJobReader(set), "");
  const { rows, error, isLoading } = state;
  const more = useCallback(() => void list.more(), [list]);
  const columns = useMemo(() => columnsFor(set), [set]);
  const isEmpty = rows.isLoaded && rows.items.length === 0 && rows.next === null;
  return (
    <div className="view-list sample-jobs-table">
      <search className="filters">
        <SetFilter set={set} onSet={onSet} />
      </search>
      {error !== null && <ErrorNote error={error} onRetry={() => void list.reload()} />}
      {!rows.isLoaded && isLoading && <Loading what="sample jobs" />}
      {isEmpty && (
        <div className="empty">
          <p>
            {set === "" ? "There is no sample job." : `No sample job concerns a set of the name ${set}.`} A sample job
            syncs, warms up, removes or clears the data of a set.
          </p>
          <a href={hashOf(["submit"])}>Submit one</a>
        </div>
      )}
      {rows.isLoaded && !isEmpty && (
        <VirtualTable
          label="Sample jobs"
          columns={columns}
          rows={rows.items}
          keyOf={(job) => job.uid}
          next={rows.next}
          onNearEnd={more}
          onOpen={(job) => onOpen(job.uid)}
        />
      )}
    </div>
  );
}

/** A filter that applies when the user presses Enter or leaves the field. */
function SetFilter({ set, onSet }: { set: string; onSet: (set: string) => void }) {
  const [text, setText] = useState(set);
  useEffect(() => setText(set), [set]);
  const apply = () => text.trim() !== set && onSet(text.trim());
  return (
    <label className="field">
      <span className="field-name">Sample set</span>
      <input
        value={text}
        placeholder="all"
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === "Enter" && apply()}
      />
    </label>
  );
}

function useSampleJobReader(set: string): ListReader<SampleJobSummary> {
  const { client } = usePage().api;
  return useMemo(() => {
    const read = async (more: object, signal: AbortSignal) => {
      const query = { ...(set !== "" && { set }), ...more, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/samplejobs", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: SampleJobSummary[]; nextPageToken: string | null };
    };
    return {
      page: (token, signal) => read({ pageSize: PAGE_SIZE, ...(token !== null && { pageToken: token }) }, signal),
      byUid: async (uids, signal) => (await read({ uid: uids }, signal)).items,
    };
  }, [client, set]);
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
      className: "column-replicas",
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
