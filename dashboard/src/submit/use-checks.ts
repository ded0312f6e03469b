import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { usePage } from "../page-context";
import type { Check } from "./checks";
import type { ManifestText } from "./documents";
import type { ManifestRequest } from "./requests";
import { type DryRunMode, dryRun } from "./sending";

/** Milliseconds after the last key until the text is checked. */
const TYPING = 500;

/**
 * Return what the dry run answers to these requests.
 *
 * `previous` answers are returned while the next ones are on their way, so a caller must compare the texts.
 */
export function useDryRun(requests: readonly ManifestRequest[], mode: DryRunMode, isEnabled: boolean) {
  const { transport } = usePage().api;
  const key = requests.map(({ namespace, resource, body }) => [namespace, resource, body]);
  return useQuery({
    queryKey: ["dry-run", mode, key],
    queryFn: ({ signal }): Promise<Check[]> => dryRun(transport, requests, mode, signal),
    enabled: isEnabled && requests.length > 0,
    placeholderData: (previous) => previous,
    // The answers contain the parsed documents, and a text is seldom written twice.
    structuralSharing: false,
    gcTime: 0,
  });
}

/** Return the value after it has stayed the same for a moment. */
export function useRested<T>(value: T): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), TYPING);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

/** Whether these documents can be sent. */
export function isSendable(parsed: ManifestText): boolean {
  return parsed.documents.length > 0 && parsed.problems.length === 0;
}
