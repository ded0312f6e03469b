import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { usePage } from "../page-context";

/** Return the kinds that the gateway accepts. They change only with its version. */
export function useKinds() {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["kinds"],
    queryFn: async ({ signal }) => bodyOf(await client.GET("/api/v1/kinds", { signal })).items,
  });
}
