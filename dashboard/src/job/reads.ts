import { type ApiClient, bodyOf } from "../api/client";
import type { HistoryEntry, Job, KubernetesEvent, PostedManifest, Replica, ScaleRecord } from "../api/types";

export interface Page<T> {
  items: T[];
  nextPageToken: string | null;
}

/** A job as it was read, with the ETag that an edit sends. */
export interface ReadJob {
  job: Job;
  etag: string;
}

const PAGE_SIZE = 500;

/** Read all pages of a list. `read` gets the parameters of a page. */
export async function readAll<T>(read: (page: PageParameters) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let token: string | null = null;
  do {
    const page: Page<T> = await read(pageParameters(token));
    items.push(...page.items);
    token = page.nextPageToken;
  } while (token !== null);
  return items;
}

interface PageParameters {
  pageSize: number;
  pageToken?: string;
}

export function pageParameters(token: string | null, pageSize: number = PAGE_SIZE): PageParameters {
  return { pageSize, ...(token !== null && { pageToken: token }) };
}

export async function readJob(client: ApiClient, uid: string, signal: AbortSignal): Promise<ReadJob> {
  const result = await client.GET("/api/v1/jobs/{uid}", { params: { path: { uid } }, signal });
  return { job: bodyOf(result), etag: result.response.headers.get("ETag") ?? "" };
}

export async function readPostedManifest(client: ApiClient, uid: string, signal: AbortSignal): Promise<PostedManifest> {
  return bodyOf(await client.GET("/api/v1/jobs/{uid}/posted-manifest", { params: { path: { uid } }, signal }));
}

export function readReplicas(client: ApiClient, uid: string, signal: AbortSignal): Promise<Replica[]> {
  return readAll(async (query) =>
    bodyOf(await client.GET("/api/v1/jobs/{uid}/replicas", { params: { path: { uid }, query }, signal })),
  );
}

export function readHistory(client: ApiClient, uid: string, signal: AbortSignal): Promise<HistoryEntry[]> {
  return readAll(async (query) =>
    bodyOf(await client.GET("/api/v1/jobs/{uid}/history", { params: { path: { uid }, query }, signal })),
  );
}

export function readScaleRecords(client: ApiClient, uid: string, signal: AbortSignal): Promise<ScaleRecord[]> {
  return readAll(async (query) =>
    bodyOf(await client.GET("/api/v1/jobs/{uid}/scale-records", { params: { path: { uid }, query }, signal })),
  );
}

export function readEvents(client: ApiClient, uid: string, signal: AbortSignal): Promise<KubernetesEvent[]> {
  return readAll(async (query) =>
    bodyOf(await client.GET("/api/v1/jobs/{uid}/events", { params: { path: { uid }, query }, signal })),
  );
}
