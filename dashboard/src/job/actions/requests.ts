import { type ApiClient, bodyOf } from "../../api/client";
import { ApiError } from "../../api/problems";
import type { Job } from "../../api/types";
import type { ActionInput } from "./effects";
import type { Action } from "./permitted";
import { changedSizes } from "./sizes";

/** A job and the ETag of the version that the user sees. */
export interface SeenJob {
  job: Job;
  etag: string;
}

/** Carry out an action, and return the job after it: for a retry, the new job. `key` makes a retry safe to repeat. */
export async function act(
  client: ApiClient,
  action: Action,
  { job, etag }: SeenJob,
  input: ActionInput,
  key: string,
): Promise<Job> {
  const path = { namespace: job.namespace, name: job.name };
  // Without a match, the job has changed since the user saw it, or another job has its name.
  const params = { path, header: { "If-Match": etag } };
  const body = { ...(input.reason !== "" && { reason: input.reason }) };
  switch (action) {
    case "scale": {
      const tasks = changedSizes(job, input.sizes);
      return bodyOf(
        await client.POST("/api/v1/namespaces/{namespace}/jobs/{name}/scale", { params, body: { ...body, tasks } }),
      );
    }
    case "pause":
      return bodyOf(await client.POST("/api/v1/namespaces/{namespace}/jobs/{name}/pause", { params, body }));
    case "resume":
      return bodyOf(await client.POST("/api/v1/namespaces/{namespace}/jobs/{name}/resume", { params, body }));
    case "cancel":
      return bodyOf(await client.POST("/api/v1/namespaces/{namespace}/jobs/{name}/cancel", { params, body }));
    case "delete":
      return bodyOf(
        await client.DELETE("/api/v1/namespaces/{namespace}/jobs/{name}", { params: { ...params, query: body } }),
      );
    case "retry":
      return retry(client, job, input.name, key);
  }
}

/** Retry takes no If-Match, and a name selects the newest job that had it. So compare the uid before. */
async function retry(client: ApiClient, job: Job, name: string, key: string): Promise<Job> {
  const path = { namespace: job.namespace, name: job.name };
  const holder = bodyOf(await client.GET("/api/v1/namespaces/{namespace}/jobs/{name}/status", { params: { path } }));
  if (holder.uid !== job.uid) {
    throw new ApiError(409, "NameTaken", `a newer job has the name ${job.name}, and a retry would repeat that job`);
  }
  const params = { path, header: { "Idempotency-Key": key } };
  const body = { ...(name !== "" && { name }) };
  return bodyOf(await client.POST("/api/v1/namespaces/{namespace}/jobs/{name}/retry", { params, body }));
}

/** Read the present version of a job. */
export async function readSeen(client: ApiClient, uid: string): Promise<SeenJob> {
  const result = await client.GET("/api/v1/jobs/{uid}", { params: { path: { uid } } });
  return { job: bodyOf(result), etag: result.response.headers.get("ETag") ?? "" };
}

/** Return a key that no other request has. `crypto.randomUUID` exists only on pages that are served with TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
