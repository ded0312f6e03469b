import { useMemo } from "react";
import { bodyOf } from "../api/client";
import type { SampleSetSummary } from "../api/types";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { navigate } from "../routing/use-location";
import { LiveTable } from "../ui/live-table";
import { PhaseBadge } from "../ui/phases";
import type { Column } from "../ui/virtual-table";
import { Age } from "../ui/when";
import { CachedBar } from "./cached-bar";

export function SetsTable() {
  return (
    <div className="view-list sets-table">
      <LiveTable
        label="Sample sets"
        changes={usePage().setChanges}
        reader={useSetReader()}
        columns={COLUMNS}
        onOpen={(set) => navigate(["data", set.uid])}
        empty={
          <div className="empty">
            <p>There is no sample set. A sample set is a data cache that jobs mount.</p>
            <a href={hashOf(["submit"])}>Submit one</a>
          </div>
        }
      />
    </div>
  );
}

function useSetReader(): ListReader<SampleSetSummary> {
  const { client } = usePage().api;
  return useMemo(
    () => async (parameters, signal) => {
      const query = { ...parameters, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/samplesets", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: SampleSetSummary[]; nextPageToken: string | null };
    },
    [client],
  );
}

const COLUMNS: readonly Column<SampleSetSummary>[] = [
  { title: "Phase", className: "column-phase", cell: (set) => <PhaseBadge phase={set.status.phase} /> },
  {
    title: "Name",
    className: "column-name",
    cell: (set) => (
      <>
        <a href={hashOf(["data", set.uid])}>{set.name}</a>
        <span className="secondary">{set.namespace}</span>
      </>
    ),
  },
  { title: "Cached", className: "column-replicas", cell: (set) => <CachedBar cache={set.status.cache} /> },
  { title: "Servers", className: "column-kind", cell: (set) => serversText(set.status.runtime) },
  { title: "Message", className: "column-cause", cell: (set) => <Message {...set.status} /> },
  { title: "Age", className: "column-time", cell: (set) => <Age createdAt={set.createdAt} /> },
];

export function serversText({ ready, wanted }: { ready: number; wanted: number }): string {
  return `${ready} of ${wanted} ready`;
}

export function Message({ reason, message }: { reason: string; message: string }) {
  const text = [reason, message].filter((part) => part !== "").join(": ");
  return <span title={text}>{text}</span>;
}
