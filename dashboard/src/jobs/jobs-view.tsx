import { useMemo } from "react";
import { bodyOf } from "../api/client";
import type { JobStatus, JobSummary } from "../api/types";
import { causeInShort } from "../job/explanation";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { navigate, replaceQuery, useLocation } from "../routing/use-location";
import { LiveTable } from "../ui/live-table";
import { PhaseBadge } from "../ui/phases";
import { AggregateBar } from "../ui/progress";
import type { Column } from "../ui/virtual-table";
import { Age, Length } from "../ui/when";
import { FilterBar } from "./filter-bar";
import { type Filters, filtersOf, isFiltered, listParameters, queryOf } from "./filters";

export function JobsView() {
  const { query } = useLocation();
  const filters = useMemo(() => filtersOf(query), [query]);
  return (
    <div className="view view-list">
      <h1 className="visually-hidden">Jobs</h1>
      <FilterBar filters={filters} onChange={(changed) => replaceQuery(queryOf(changed))} />
      <LiveTable<JobSummary, JobStatus>
        label="Jobs"
        changes={usePage().jobChanges}
        reader={useJobReader(filters)}
        phases={filters.phase.join(",")}
        columns={COLUMNS}
        onOpen={(job) => navigate(["jobs", job.uid])}
        keys={KEYS}
        empty={<NoJobs isFiltered={isFiltered(filters)} />}
      />
    </div>
  );
}

const KEYS = { l: (job: JobSummary) => navigate(["jobs", job.uid, "logs"]) };

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
    const wanted = listParameters(filters, Date.now());
    return async (parameters, signal) => {
      const query = { ...wanted, ...parameters, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/jobs", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: JobSummary[]; nextPageToken: string | null };
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
  {
    title: "Duration",
    className: "column-time",
    cell: (job) => <Length start={job.status.startedAt} end={job.status.finishedAt} />,
  },
  { title: "Age", className: "column-time", cell: (job) => <Age createdAt={job.createdAt} /> },
];

/** The cause of the phase. Its title has all that the status says. */
function Cause({ job }: { job: JobSummary }) {
  const text = causeInShort(job);
  const { message } = job.status;
  return <span title={message === "" || message === text ? text : `${text}\n${message}`}>{text}</span>;
}
