import { useMemo, useState } from "react";
import { bodyOf } from "../api/client";
import type { JobStatus, JobSummary } from "../api/types";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { navigate, pushQuery, replaceQuery, useLocation } from "../routing/use-location";
import { LiveTable } from "../ui/live-table";
import { useNow } from "../ui/now";
import { loadedLater, Part } from "../ui/part";
import { type Arrangement, arrangementOf, comparisonOf, withArrangement } from "./arrangement";
import { jobColumns } from "./columns";
import { FilterBar } from "./filter-bar";
import { type Filters, filtersOf, isFiltered, listParameters, queryOf } from "./filters";
import { SelectionBar } from "./selection-bar";

const FirstJob = loadedLater(
  () => import("./first-job"),
  (module) => module.FirstJob,
);

type Selected = ReadonlyMap<string, JobSummary>;

/** The table of jobs, with its filters, its order and its columns in the address, and actions on several jobs. */
export function JobsView() {
  const { query } = useLocation();
  const filters = useMemo(() => filtersOf(query), [query]);
  const arrangement = useMemo(() => arrangementOf(query), [query]);
  const [selected, setSelected] = useState<Selected>(new Map());
  const columns = useMemo(
    () =>
      jobColumns({
        arrangement,
        onArrange: (changed) => pushQuery(withArrangement(queryOf(filters), changed)),
        selected,
        onSelect: (jobs, isSelected) => setSelected((present) => withSelected(present, jobs, isSelected)),
      }),
    [arrangement, filters, selected],
  );
  return (
    <div className="view view-list">
      <h1 className="visually-hidden">Jobs</h1>
      <FilterBar
        filters={filters}
        arrangement={arrangement}
        onChange={(changed, isTyping = false) =>
          (isTyping ? replaceQuery : pushQuery)(withArrangement(queryOf(changed), arrangement))
        }
        onArrange={(changed) => pushQuery(withArrangement(queryOf(filters), changed))}
      />
      <LiveTable<JobSummary, JobStatus>
        label="Jobs"
        changes={usePage().jobChanges}
        reader={useJobReader(filters)}
        phases={filters.phase.join(",")}
        columns={columns}
        compare={useComparison(arrangement.sort)}
        onOpen={(job) => navigate(["jobs", job.uid])}
        keys={{
          l: (job) => navigate(["jobs", job.uid, "logs"]),
          x: (job) => setSelected((present) => withSelected(present, [job], !present.has(job.uid))),
        }}
        empty={<NoJobs isFiltered={isFiltered(filters)} />}
      />
      {/* Below the table, so that no row moves under the mouse. */}
      {selected.size > 0 && <SelectionBar jobs={[...selected.values()]} onClear={() => setSelected(new Map())} />}
    </div>
  );
}

function NoJobs({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered) {
    return (
      <Part what="the example">
        <FirstJob />
      </Part>
    );
  }
  return (
    <div className="empty">
      <p>No job matches the filters.</p>
      <a href={hashOf(["jobs"])}>Remove the filters</a>
    </div>
  );
}

function withSelected(selected: Selected, jobs: readonly JobSummary[], isSelected: boolean): Selected {
  const changed = new Map(selected);
  for (const job of jobs) {
    if (isSelected) changed.set(job.uid, job);
    else changed.delete(job.uid);
  }
  return changed;
}

/** Return the comparison of the order; undefined for the order of the gateway. */
function useComparison(sort: Arrangement["sort"]) {
  const now = useNow();
  // Only durations grow.
  const time = sort?.column === "duration" ? now : 0;
  return useMemo(() => (sort === null ? undefined : comparisonOf(sort, time)), [sort, time]);
}

/** Return the reader of the list with these filters. It changes only with them. */
function useJobReader(filters: Filters): ListReader<JobSummary> {
  const { client } = usePage().api;
  const key = queryOf(filters).toString();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another order or column does not start a new list
  return useMemo(() => {
    const wanted = listParameters(filters, Date.now());
    return async (parameters, signal) => {
      const query = { ...wanted, ...parameters, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/jobs", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: JobSummary[]; nextPageToken: string | null };
    };
  }, [client, key]);
}
