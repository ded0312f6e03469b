import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ApiClient } from "../api/client";
import { bodyOf } from "../api/client";
import type { Kind } from "../api/types";
import { usePage } from "../page-context";

/** Return the kinds that the gateway accepts. They change only with its version. */
export function useKinds() {
  return useQuery(kindsQuery(usePage().api.client));
}

/** Return a function that waits for the kinds; there are none if the gateway does not answer. */
export function useAwaitedKinds(): () => Promise<readonly Kind[]> {
  const { client } = usePage().api;
  const queries = useQueryClient();
  return () => queries.ensureQueryData(kindsQuery(client)).catch(() => []);
}

function kindsQuery(client: ApiClient) {
  return queryOptions({
    queryKey: ["kinds"],
    queryFn: async ({ signal }) => bodyOf(await client.GET("/api/v1/kinds", { signal })).items,
  });
}
