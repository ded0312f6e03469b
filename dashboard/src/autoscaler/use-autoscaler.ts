import { useMutation, useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { AutoscalerPage, Rehearsal } from "../api/types";
import { usePage } from "../page-context";

/** The runs of a chart. jobgate keeps the last 500. */
const RUNS = 200;
/** Milliseconds between two reads if the period of the autoscaler is unknown. */
const UNKNOWN_PERIOD = 30_000;
const SHORTEST_PERIOD = 5000;

/** Return the last runs. No stream announces a run, so they are read once in each period of the autoscaler. */
export function useRuns() {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["autoscaler"],
    queryFn: async ({ signal }): Promise<AutoscalerPage> =>
      bodyOf(await client.GET("/api/v1/autoscaler", { params: { query: { pageSize: RUNS } }, signal })),
    refetchInterval: ({ state }) => {
      const period = state.data?.settings?.periodSeconds;
      return period === undefined ? UNKNOWN_PERIOD : Math.max(SHORTEST_PERIOD, period * 1000);
    },
  });
}

export function useRehearsal() {
  const { client } = usePage().api;
  return useMutation({
    mutationFn: async (maxLoad: number | null): Promise<Rehearsal> => {
      const body = maxLoad === null ? {} : { maxLoad };
      return bodyOf(await client.POST("/api/v1/autoscaler/dry-run", { body }));
    },
  });
}
