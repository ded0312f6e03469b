import { useCallback, useMemo } from "react";
import { bodyOf } from "../api/client";
import type { SampleSetSummary } from "../api/types";
import type { ListReader } from "../live/list";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { navigate } from "../routing/use-location";
import { elapsed, localTime } from "../ui/durations";
import { ErrorNote, Loading } from "../ui/errors";
import { useNow } from "../ui/now";
import { PhaseBadge } from "../ui/phases";
import { useLiveList } from "../ui/use-live-list";
import { type Column, VirtualTable } from "../ui/virtual-table";
import { CachedBar } from "./cached-bar";

const PAGE_SIZE = 200;

export function SetsTable() {
  const { state, list } = useLiveList(usePage().setChanges, useSetReader(), "");
  const { rows, error, isLoading } = state;
  const more = useCallback(() => void list.more(), [list]);
  const isEmpty = rows.isLoaded && rows.items.length === 0 && rows.next === null;
  return (
    <div className="view-list sets-table">
      {error !== null && <ErrorNote error={error} onRetry={() => void list.reload()} />}
      {!rows.isLoaded && isLoading && <Loading what="sample sets" />}
      {isEmpty && (
        <div className="empty">
          <p>There is no sample set. A sample set is a data cache that jobs mount.</p>
          <a href={hashOf(["submit"])}>Submit one</a>
        </div>
      )}
      {rows.isLoaded && !isEmpty && (
        <VirtualTable
          label="Sample sets"
          columns={COLUMNS}
          rows={rows.items}
          keyOf={(set) => set.uid}
          next={rows.next}
          onNearEnd={more}
          onOpen={(set) => navigate(["data", set.uid])}
        />
      )}
    </div>
  );
}

function useSetReader(): ListReader<SampleSetSummary> {
  const { client } = usePage().api;
  return useMemo(() => {
    const read = async (more: object, signal: AbortSignal) => {
      const query = { ...more, view: "summary" as const };
      const page = bodyOf(await client.GET("/api/v1/samplesets", { params: { query }, signal }));
      // The gateway answers `view=summary` with summaries; the OpenAPI type covers both views.
      return page as { items: SampleSetSummary[]; nextPageToken: string | null };
    };
    return {
      page: (token, signal) => read({ pageSize: PAGE_SIZE, ...(token !== null && { pageToken: token }) }, signal),
      byUid: async (uids, signal) => (await read({ uid: uids }, signal)).items,
    };
  }, [client]);
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

export function Age({ createdAt }: { createdAt: string }) {
  const now = useNow();
  return (
    <time dateTime={createdAt} title={localTime(createdAt)}>
      {elapsed(createdAt, null, now)}
    </time>
  );
}
