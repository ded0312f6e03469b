import { useQuery } from "@tanstack/react-query";
import { usePage } from "../page-context";
import { useRefetchOnChange } from "../ui/refetch";
import { readCounts } from "./counts";
import type { Filters } from "./filters";

/** The counts by phase and by kind, as text: `12`, or `1000+` if the gateway stopped counting. */
export interface Counts {
  phases: Readonly<Record<string, string>>;
  kinds: Readonly<Record<string, string>>;
}

/** Return the counts for these filters; undefined until they have arrived. They follow the changes of jobs. */
export function useCounts(filters: Filters): Counts | undefined {
  const { api, jobChanges } = usePage();
  const query = useQuery({
    queryKey: ["counts", filters],
    queryFn: ({ signal }) => readCounts(api.client, filters, signal),
    placeholderData: (previous) => previous,
  });
  useRefetchOnChange(jobChanges, query.refetch);
  return query.data;
}
