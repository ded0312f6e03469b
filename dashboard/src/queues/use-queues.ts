import { useQuery } from "@tanstack/react-query";
import { type ApiClient, bodyOf } from "../api/client";
import type { JobQueue, JobQueuePage } from "../api/types";
import { pageParameters } from "../job/reads";
import { usePage } from "../page-context";

/** Milliseconds between two reads: no stream announces a change of a queue. */
const PERIOD = 5000;
/** Queues of a page, and the most that are read. */
const PAGE_SIZE = 100;
const MOST = 500;

/** Return the queues of all namespaces that the user may see, and whether there are more. */
export function useQueues() {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => readQueues(client, signal),
    refetchInterval: PERIOD,
  });
}

/** Return one queue with the first jobs that wait in it. */
export function useQueue(namespace: string, name: string) {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["queue", namespace, name],
    queryFn: async ({ signal }): Promise<JobQueue> =>
      bodyOf(
        await client.GET("/api/v1/namespaces/{namespace}/queues/{name}", {
          params: { path: { namespace, name } },
          signal,
        }),
      ),
    refetchInterval: PERIOD,
  });
}

async function readQueues(client: ApiClient, signal: AbortSignal): Promise<JobQueuePage> {
  let page: JobQueuePage | undefined;
  do {
    const query = pageParameters(page?.nextPageToken ?? null, PAGE_SIZE);
    const next: JobQueuePage = bodyOf(await client.GET("/api/v1/queues", { params: { query }, signal }));
    page = { ...next, items: [...(page?.items ?? []), ...next.items] };
  } while (page.nextPageToken !== null && page.items.length < MOST);
  return page;
}
