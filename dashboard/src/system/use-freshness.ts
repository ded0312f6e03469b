import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { bodyOf } from "../api/client";
import { usePage } from "../page-context";

/** Milliseconds between two reads of the state of the system. */
const PERIOD = 5000;

/** Return the state of the system, read periodically while the page is visible. */
export function useSystem() {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["system"],
    queryFn: async ({ signal }) => bodyOf(await client.GET("/api/v1/system", { signal })),
    refetchInterval: PERIOD,
    retry: false,
  });
}

/** Keep what the page knows about the mirror up to date, with the reason if it is stale. */
export function useFreshness(): void {
  const { contact } = usePage();
  const { data } = useSystem();
  useEffect(() => {
    if (data === undefined) return;
    const { mirror, controller } = data;
    contact.update((state) => ({
      ...state,
      observedAt: mirror.ageSeconds === null ? null : Date.now() - mirror.ageSeconds * 1000,
      stale: mirror.stale,
      reason: controller.message,
    }));
  }, [contact, data]);
}
