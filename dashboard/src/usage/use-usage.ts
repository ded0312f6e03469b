import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ApiClient, bodyOf } from "../api/client";
import type { UsagePage } from "../api/types";
import { usePage } from "../page-context";

/** Milliseconds between two reads: what runs goes on, and no stream announces it. */
const PERIOD = 60_000;
/** Groups of a page, and the most that are read. */
const PAGE_SIZE = 500;
const MOST = 2000;

/** Return the usage of the namespaces that the user may see, added up by some dimension. */
export function useUsage(by: string, from: string, to: string) {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["usage", by, from, to],
    queryFn: ({ signal }) => readUsage(client, { by, from, to }, signal),
    refetchInterval: PERIOD,
    // The former table stays until the next one is there, so that the page does not jump.
    placeholderData: keepPreviousData,
  });
}

async function readUsage(
  client: ApiClient,
  wanted: { by: string; from: string; to: string },
  signal: AbortSignal,
): Promise<UsagePage> {
  let page: UsagePage | undefined;
  do {
    const token = page?.nextPageToken ?? null;
    const query = { ...wanted, pageSize: PAGE_SIZE, ...(token === null ? {} : { pageToken: token }) };
    const next: UsagePage = bodyOf(await client.GET("/api/v1/usage", { params: { query }, signal }));
    page = { ...next, items: [...(page?.items ?? []), ...next.items] };
  } while (page.nextPageToken !== null && page.items.length < MOST);
  return page;
}
