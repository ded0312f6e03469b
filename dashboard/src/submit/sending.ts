import { ApiError } from "../api/problems";
import type { Transport } from "../api/transport";
import type { Check, DryRunItem } from "./checks";
import { isSeveral, type ManifestRequest } from "./requests";

/** `Local`: only the gateway checks the manifests. `All`: the cluster checks the objects, too. */
export type DryRunMode = "Local" | "All";

/** An object that a submission has stored. */
export interface Stored {
  uid: string;
  namespace: string;
  name: string;
  kind: string;
}

export interface Outcome {
  request: ManifestRequest;
  stored: readonly Stored[];
  /** Why the gateway refused the request; null if it stored the objects. */
  error: ApiError | null;
}

/** Check each request. Rejects if the gateway could not check one, for example because it does not answer. */
export async function dryRun(
  transport: Transport,
  requests: readonly ManifestRequest[],
  mode: DryRunMode,
  signal: AbortSignal,
): Promise<Check[]> {
  const checks: Check[] = [];
  for (const request of requests) {
    const answer = await refusable(async () => {
      const response = await post(transport, request, `/dry-run?dryRun=${mode}`, {}, signal);
      return (await response.json()) as { items: DryRunItem[] };
    });
    checks.push({ request, items: answer.value?.items ?? [], error: answer.error });
  }
  return checks;
}

/**
 * Submit each request; several manifests of a request are stored together or not at all.
 *
 * A repetition with the same key stores nothing twice, so a caller may repeat it after any error.
 */
export async function submit(
  transport: Transport,
  requests: readonly ManifestRequest[],
  key: string,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [index, request] of requests.entries()) {
    const headers = { "Idempotency-Key": `${key}-${index}` };
    const answer = await refusable(() => store(transport, request, headers));
    outcomes.push({ request, stored: answer.value ?? [], error: answer.error });
  }
  return outcomes;
}

async function store(
  transport: Transport,
  request: ManifestRequest,
  headers: Record<string, string>,
): Promise<Stored[]> {
  if (!isSeveral(request)) return [(await (await post(transport, request, "", headers)).json()) as Stored];
  const response = await post(transport, request, "/batch?atomic=true", headers);
  const { items } = (await response.json()) as { items: { object: Stored }[] };
  return items.map((item) => item.object);
}

function post(
  transport: Transport,
  request: ManifestRequest,
  route: string,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  const path = `api/v1/namespaces/${encodeURIComponent(request.namespace)}/${request.resource}${route}`;
  return transport.post(path, { "Content-Type": request.contentType, ...headers }, request.body, signal);
}

/** Return the error of a request that the gateway refused. Other errors say nothing about the request. */
async function refusable<T>(send: () => Promise<T>): Promise<{ value: T | null; error: ApiError | null }> {
  try {
    return { value: await send(), error: null };
  } catch (error) {
    if (error instanceof ApiError && !error.isTemporary && error.status !== 401) return { value: null, error };
    throw error;
  }
}
