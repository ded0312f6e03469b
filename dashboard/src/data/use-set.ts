import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { Dependents, KubernetesEvent, SampleJob, SampleSet } from "../api/types";
import { usePage } from "../page-context";
import { useRefetchOnChange } from "../ui/refetch";

/** Entries of a history and events that a page reads: the newest ones. */
const PAGE_SIZE = 200;

/** An object with the ETag of the version that was read. */
export interface Versioned<T> {
  object: T;
  etag: string;
}

function versioned<T>(result: { data?: T; response: Response }): Versioned<T> {
  return { object: bodyOf(result), etag: result.response.headers.get("ETag") ?? "" };
}

export function useSet(uid: string) {
  const { api, setChanges } = usePage();
  const query = useQuery({
    queryKey: ["sampleset", uid],
    queryFn: async ({ signal }): Promise<Versioned<SampleSet>> =>
      versioned(await api.client.GET("/api/v1/samplesets/{uid}", { params: { path: { uid } }, signal })),
  });
  useRefetchOnChange(setChanges, query.refetch, uid);
  return query;
}

/** The jobs that mount the set change with the jobs, and its sample jobs with those. */
export function useDependents(uid: string) {
  const { api, jobChanges, sampleJobChanges } = usePage();
  const query = useQuery({
    queryKey: ["sampleset", uid, "dependents"],
    queryFn: async ({ signal }): Promise<Dependents> =>
      bodyOf(await api.client.GET("/api/v1/samplesets/{uid}/dependents", { params: { path: { uid } }, signal })),
  });
  useRefetchOnChange(sampleJobChanges, query.refetch);
  useRefetchOnChange(jobChanges, query.refetch);
  return query;
}

export function useSetHistory(uid: string) {
  const { api, setChanges } = usePage();
  const query = useQuery({
    queryKey: ["sampleset", uid, "history"],
    queryFn: async ({ signal }) => {
      const params = { path: { uid }, query: { pageSize: PAGE_SIZE } };
      return bodyOf(await api.client.GET("/api/v1/samplesets/{uid}/history", { params, signal })).items;
    },
  });
  useRefetchOnChange(setChanges, query.refetch, uid);
  return query;
}

export function useSetEvents(uid: string) {
  const { api, setChanges } = usePage();
  const query = useQuery({
    queryKey: ["sampleset", uid, "events"],
    queryFn: async ({ signal }): Promise<readonly KubernetesEvent[]> => {
      const params = { path: { uid }, query: { pageSize: PAGE_SIZE } };
      return bodyOf(await api.client.GET("/api/v1/samplesets/{uid}/events", { params, signal })).items;
    },
  });
  useRefetchOnChange(setChanges, query.refetch, uid);
  return query;
}

export function useSampleJob(uid: string) {
  const { api, sampleJobChanges } = usePage();
  const query = useQuery({
    queryKey: ["samplejob", uid],
    queryFn: async ({ signal }): Promise<Versioned<SampleJob>> =>
      versioned(await api.client.GET("/api/v1/samplejobs/{uid}", { params: { path: { uid } }, signal })),
  });
  useRefetchOnChange(sampleJobChanges, query.refetch, uid);
  return query;
}

export function useSampleJobHistory(uid: string) {
  const { api, sampleJobChanges } = usePage();
  const query = useQuery({
    queryKey: ["samplejob", uid, "history"],
    queryFn: async ({ signal }) => {
      const params = { path: { uid }, query: { pageSize: PAGE_SIZE } };
      return bodyOf(await api.client.GET("/api/v1/samplejobs/{uid}/history", { params, signal })).items;
    },
  });
  useRefetchOnChange(sampleJobChanges, query.refetch, uid);
  return query;
}
