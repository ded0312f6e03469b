import { type ApiClient, bodyOf } from "../api/client";
import { type Filters, listParameters } from "./filters";
import type { Counts } from "./use-counts";

/** Read the counts for these filters. The gateway leaves the filter by phase out of the counts by phase, and so on. */
export async function readCounts(client: ApiClient, filters: Filters, signal: AbortSignal): Promise<Counts> {
  const query = listParameters(filters, Date.now());
  const counts = bodyOf(await client.GET("/api/v1/jobs/counts", { params: { query }, signal }));
  return {
    phases: Object.fromEntries(counts.phases.map((each) => [each.phase, text(each)])),
    kinds: Object.fromEntries(counts.kinds.map((each) => [each.kind, text(each)])),
  };
}

function text({ count, isComplete }: { count: number; isComplete: boolean }): string {
  return isComplete ? `${count}` : `${count}+`;
}
