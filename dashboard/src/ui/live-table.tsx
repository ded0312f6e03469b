import { type ReactNode, useEffect, useMemo } from "react";
import type { Changes } from "../live/changes";
import { type ListReader, MOST_ROWS } from "../live/list";
import type { Change, Row } from "../live/rows";
import { ErrorNote, Loading } from "./errors";
import { thousands } from "./numbers";
import { useLiveList } from "./use-live-list";
import { type Column, VirtualTable } from "./virtual-table";

interface LiveTableProps<R extends Row, C extends Change> {
  /** What the rows are, in the plural. */
  label: string;
  changes: Changes<C>;
  /** A new reader starts a new list. */
  reader: ListReader<R>;
  /** The phases of the filter, joined by commas. */
  phases?: string;
  columns: readonly Column<R>[];
  onOpen: (row: R) => void;
  /** The order of the rows, if it is not that of the gateway. */
  compare?: ((one: R, other: R) => number) | undefined;
  keys?: Readonly<Record<string, (row: R) => void>>;
  /** What is shown instead of an empty table. */
  empty: ReactNode;
}

/** The most rows that are read to sort them. */
const MOST_SORTED = 5000;

/** A table that follows the objects of a list, and reads older ones as the reader scrolls. */
export function LiveTable<R extends Row, C extends Change>(props: LiveTableProps<R, C>) {
  const { label, changes, reader, phases = "", columns, compare, onOpen, keys, empty } = props;
  const { state, list, generation } = useLiveList<R, C>(changes, reader, phases);
  const { rows, error, isLoading, isFull } = state;
  const items = useMemo(() => (compare === undefined ? rows.items : rows.items.toSorted(compare)), [rows, compare]);
  const isPart = compare !== undefined && rows.next !== null;
  // The gateway lists the newest first, so another order needs all rows.
  useEffect(() => {
    if (isPart && !isLoading && error === null && rows.items.length < MOST_SORTED) list.shown(rows.items.length - 1);
  }, [isPart, isLoading, error, rows, list]);
  const name = label.toLowerCase();
  const isEmpty = rows.isLoaded && rows.items.length === 0 && rows.next === null;
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={() => void list.reload()} />}
      {!rows.isLoaded && isLoading && <Loading what={name} />}
      {isEmpty && empty}
      {isPart && (
        <p className="sorted-part" role="status">
          {rows.items.length < MOST_SORTED && error === null
            ? `Reading all ${name} to sort them: ${thousands(rows.items.length)} so far.`
            : `Sorted are the newest ${thousands(rows.items.length)} ${name}, not all. Filters reach the others.`}
        </p>
      )}
      {rows.isLoaded && !isEmpty && (
        <VirtualTable
          key={generation}
          label={label}
          columns={columns}
          rows={items}
          keyOf={uidOf}
          next={rows.next}
          more={
            isFull
              ? `The table has the newest ${thousands(MOST_ROWS)} ${name}. Filters show older ones.`
              : `Loading older ${name}…`
          }
          onShown={list.shown}
          onOpen={onOpen}
          keys={keys}
        />
      )}
    </>
  );
}

function uidOf({ uid }: Row): string {
  return uid;
}
