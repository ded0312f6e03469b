import { useCallback, useMemo } from "react";
import { bodyOf } from "../api/client";
import type { JobStatus, JobSummary } from "../api/types";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { navigate, replaceQuery, useLocation } from "../routing/use-location";
import { elapsed, localTime } from "../ui/durations";
import { ErrorNote, Loading } from "../ui/errors";
import { useNow } from "../ui/now";
import { PhaseBadge } from "../ui/phases";
import { AggregateBar } from "../ui/progress";
import { useLiveList } from "../ui/use-live-list";
import { type Column, VirtualTable } from "../ui/virtual-table";
import { FilterBar } from "./filter-bar";
import { type Filters, filtersOf, isFiltered, listParameters, queryOf } from "./filters";

const PAGE_SIZE = 200;

export function JobsView() {
  const { query } = useLocation();
  const filters = useMemo(() => filtersOf(query), [query]);
  const { state, list } = useLiveList<JobSummary, JobStatus>(
    usePage().jobChanges,
    useJobReader(filters),
    filters.phase.join(","),
  );
  const { rows, error, isLoading } = state;
  const more = useCallback(() => void list.more(), [list]);
  return (
    <div className="view view-list">
      <h1 className="visually-hidden">Jobs</h1>
      <FilterBar filters={filters} onChange={(changed) => replaceQuery(queryOf(changed))} />
      {error !== null && <ErrorNote error={error} onRetry={() => void list.reload()} />}
      {!rows.isLoaded && isLoading && <Loading what="jobs" />}
      {rows.isLoaded && rows.items.length === 0 && rows.next === null && <NoJobs isFiltered={isFiltered(filters)} />}
      {(rows.items.length > 0 || rows.next !== null) && (
        <VirtualTable
          label="Jobs"
          columns={COLUMNS}
          rows={rows.items}
          keyOf={(job) => job.uid}
          next={rows.next}
          onNearEnd={more}
          onOpen={(job) => navigate(["jobs", job.uid])}
          keys={{ l: (job) => navigate(["jobs", job.uid, "logs"]) }}
        />
      )}
    </div>
  );
}

function NoJobs({ isFiltered }: { isFiltered: boolean }) {
  return (
    <div className="empty">
      <p>{isFiltered ? "No job matches the filters." : "No job has been submitted yet."}</p>
      {isFiltered ? <a href={hashOf(["jobs"])}>Remove the filters</a> : <a href={hashOf(["submit"])}>Submit a job</a>}
    </div>
  );
}

/** Return the reader of the list with these filters. It changes only with them. */
function useJobReader(filters: Filters): ListReader<JobSummary> {
  const { client } = usePage().api;
  return useMemo(() => {
    const parameters = listParameters(filters, Date.now());
    const read = async (more: object, signal: AbortSignal) => {
      const query = { ...parameters, ...more, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/jobs", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: JobSummary[]; nextPageToken: string | null };
    };
    return {
      page: (token, signal) => read({ pageSize: PAGE_SIZE, ...(token !== null && { pageToken: token }) }, signal),
      byUid: async (uids, signal) => (await read({ uid: uids }, signal)).items,
    };
  }, [client, filters]);
}

const COLUMNS: readonly Column<JobSummary>[] = [
  { title: "Phase", className: "column-phase", cell: (job) => <PhaseBadge phase={job.status.phase} /> },
  {
    title: "Name",
    className: "column-name",
    cell: (job) => (
      <>
        <a href={hashOf(["jobs", job.uid])}>{job.name}</a>
        <span className="secondary">{job.namespace}</span>
      </>
    ),
  },
  { title: "Kind", className: "column-kind", cell: (job) => job.kind },
  { title: "Replicas", className: "column-replicas", cell: (job) => <AggregateBar aggregate={job.status.aggregate} /> },
  { title: "Cause", className: "column-cause", cell: (job) => <Cause job={job} /> },
  { title: "Duration", className: "column-time", cell: (job) => <Duration job={job} /> },
  { title: "Age", className: "column-time", cell: (job) => <Age job={job} /> },
];

/** Why the job is pending if it is, otherwise the cause of its phase. */
function Cause({ job }: { job: JobSummary }) {
  const pending = job.status.pendingReasons[0];
  const text = pending === undefined ? job.status.message : `${pending.code}: ${pending.message}`;
  return <span title={text}>{text}</span>;
}

function Duration({ job }: { job: JobSummary }) {
  return elapsed(job.status.startedAt, job.status.finishedAt, useNow());
}

function Age({ job }: { job: JobSummary }) {
  const now = useNow();
  return (
    <time dateTime={job.createdAt} title={localTime(job.createdAt)}>
      {elapsed(job.createdAt, null, now)}
    </time>
  );
}
