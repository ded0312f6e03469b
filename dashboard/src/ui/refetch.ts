import { useEffect, useRef } from "react";
import type { Changes } from "../live/changes";
import { Rereading } from "./rereading";

/**
 * Call `refetch` after changes, as often as `Rereading` permits. It must not reject, as that of a query.
 *
 * With `uid`, only the changes of that object count.
 */
export function useRefetchOnChange<T extends { uid: string }>(
  changes: Changes<T>,
  refetch: () => unknown,
  uid?: string,
): void {
  const latest = useRef(refetch);
  latest.current = refetch;
  useEffect(() => {
    const rereading = new Rereading(() => latest.current());
    const unsubscribe = changes.subscribe({
      onChange: (status) => (uid === undefined || status.uid === uid) && rereading.request(),
      onReset: () => rereading.request(),
    });
    return () => {
      unsubscribe();
      rereading.end();
    };
  }, [changes, uid]);
}
