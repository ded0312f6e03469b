import { useEffect, useMemo } from "react";
import type { Changes } from "../live/changes";
import { type ListReader, type ListState, LiveList } from "../live/list";
import type { Change, Row } from "../live/rows";
import { useStore } from "../live/store";

/**
 * Follow a list while the component is shown. A new `reader` starts a new list.
 *
 * `phases` are those of the filter, joined by commas.
 */
export function useLiveList<R extends Row, C extends Change>(
  changes: Changes<C>,
  reader: ListReader<R>,
  phases: string,
): { state: ListState<R>; list: LiveList<R, C> } {
  const list = useMemo(
    () => new LiveList<R, C>(changes, reader, phases === "" ? [] : phases.split(",")),
    [changes, reader, phases],
  );
  useEffect(() => {
    list.start();
    return () => list.stop();
  }, [list]);
  return { state: useStore(list.state), list };
}
