import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { Caller } from "../api/types";
import { usePage } from "../page-context";

/** Who the token of this page belongs to, and what it permits. Another sign-in reads it again. */
export function useCaller() {
  const { client } = usePage().api;
  return useQuery({
    queryKey: ["whoami"],
    queryFn: async ({ signal }) => bodyOf(await client.GET("/api/v1/whoami", { signal })),
  });
}

/**
 * Say why the caller may not submit or change anything in a namespace; null if it may, or if that is not known.
 *
 * The gateway decides; this explains it before.
 */
export function changeRefusal(caller: Caller | undefined, namespace: string): string | null {
  if (caller === undefined) return null;
  const reaches = ({ namespaces }: Caller["grants"][number]) => namespaces === null || namespaces.includes(namespace);
  const mayChange = caller.grants.some((grant) => grant.role !== "viewer" && reaches(grant));
  return mayChange ? null : `Your token may only read in the namespace ${namespace}.`;
}

/** The same for the caller of this page. */
export function useChangeRefusal(namespace: string): string | null {
  return changeRefusal(useCaller().data, namespace);
}
