import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { ApiClient } from "../api/client";
import { ApiError } from "../api/problems";
import { usePage } from "../page-context";
import { useRefetchOnChange } from "../ui/refetch";
import { readEvents, readHistory, readJob, readReplicas, readScaleRecords } from "./reads";

/** Milliseconds between two attempts to read while the gateway does not answer. */
const RETRY_PERIOD = 5000;

type Reader<T> = (client: ApiClient, uid: string, signal: AbortSignal) => Promise<T>;

export const useJob = (uid: string) => useJobQuery(uid, "job", readJob);
export const useReplicas = (uid: string) => useJobQuery(uid, "replicas", readReplicas);
export const useHistory = (uid: string) => useJobQuery(uid, "history", readHistory);
export const useScaleRecords = (uid: string) => useJobQuery(uid, "scale-records", readScaleRecords);
export const useEvents = (uid: string) => useJobQuery(uid, "events", readEvents);

/** Read something of a job, and again after each of its changes. Components that read the same share one request. */
function useJobQuery<T>(uid: string, what: string, read: Reader<T>) {
  const { api, jobChanges } = usePage();
  const queries = useQueryClient();
  const queryKey = ["job", uid, what];
  const query = useQuery({
    queryKey,
    queryFn: ({ signal }) => read(api.client, uid, signal),
    // No change may follow the one after which the read failed.
    refetchInterval: ({ state }) => (state.error instanceof ApiError && state.error.isTemporary ? RETRY_PERIOD : false),
  });
  const isFollowing = useRef(false);
  const reread = async () => {
    const isFetching = queries.isFetching({ queryKey, exact: true }) > 0;
    // An answer that is on its way may be older than the change, unless its request followed the changes already.
    if (isFetching && isFollowing.current) await query.refetch({ cancelRefetch: false });
    await query.refetch({ cancelRefetch: false });
  };
  useRefetchOnChange(jobChanges, reread, uid);
  // This effect follows the one that subscribes, which requests a read at once if the stream is open.
  useEffect(() => {
    isFollowing.current = true;
    return () => {
      isFollowing.current = false;
    };
  }, []);
  return query;
}
