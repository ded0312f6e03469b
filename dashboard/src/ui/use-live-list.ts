import { useEffect, useMemo, useState } from "react";
import type { Changes } from "../live/changes";
import { type ListReader, type ListState, LiveList } from "../live/list";
import type { Change, Row } from "../live/rows";
import { useStore } from "../live/store";

interface FollowedList<R extends Row, C extends Change> {
  /** The state of the list; its rows are those of the former list until its own have arrived. */
  state: ListState<R>;
  /** The list of these rows. */
  list: LiveList<R, C>;
  /** A number of its own for each list whose rows are shown. */
  generation: number;
}

/**
 * Follow a list while the component is shown. A new `reader` starts a new list.
 *
 * `phases` are those of the filter, joined by commas.
 */
export function useLiveList<R extends Row, C extends Change>(
  changes: Changes<C>,
  reader: ListReader<R>,
  phases: string,
): FollowedList<R, C> {
  const list = useMemo(
    () => new LiveList<R, C>(changes, reader, phases === "" ? [] : phases.split(",")),
    [changes, reader, phases],
  );
  useEffect(() => {
    list.start();
    return () => list.stop();
  }, [list]);
  const state = useStore(list.state);
  const [shown, setShown] = useState({ list, generation: 0 });
  if (shown.list === list) return { state, ...shown };
  const { rows } = shown.list.state.get();
  // Without rows, there is nothing to keep: what is said about an empty list depends on its filters.
  if (state.rows.isLoaded || state.error !== null || rows.items.length === 0) {
    setShown({ list, generation: shown.generation + 1 });
  }
  return { state: { ...state, rows }, ...shown };
}
