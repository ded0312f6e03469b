/**
 * Uses the client that orval generates: submits a job of each kind, follows it, and reads its results.
 *
 * Usage: JOBGATE_URL=http://127.0.0.1:8080 node compiled/with-orval.js MANIFESTS LABEL_SELECTOR
 */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import {
  deleteSampleJob,
  deleteSampleSet,
  getJobStatus,
  getWatchJobUrl,
  listJobHistory,
  listJobReplicas,
  listNamespaceJobs,
  readJobLog,
  submitJob,
  submitSampleJob,
  submitSampleSet,
} from "./orval/jobgate.js";
import type {
  Job,
  JobManifest,
  JobStatus,
  ListNamespaceJobsParams,
  Problem,
  SampleJobManifest,
  SampleSetManifest,
  WatchEvent,
} from "./orval/jobgate.js";

const namespace = process.env["JOBGATE_NAMESPACE"] ?? "default";
const ended = ["Succeeded", "Failed", "TimedOut", "Cancelled"];

/** Return the options of a request: the token of the user, and further headers. */
function sending(headers: Record<string, string> = {}): RequestInit {
  const token = process.env["JOBGATE_TOKEN"] ?? "none"; // `jobgate dev` needs no token
  return { headers: { Authorization: `Bearer ${token}`, ...headers } };
}

/** Return the answer if it has one of these statuses, or throw the problem that it contains. */
function expected<A extends { status: number; data: unknown }, S extends A["status"]>(
  answer: A,
  ...statuses: S[]
): Extract<A, { status: S }> {
  if (!statuses.some((status) => status === answer.status)) {
    throw new Error(JSON.stringify(answer.data));
  }
  return answer as Extract<A, { status: S }>;
}

async function submit(manifest: JobManifest, key: string): Promise<Job> {
  const answer = await submitJob(namespace, manifest, sending({ "Idempotency-Key": key }));
  return expected(answer, 201).data;
}

/** Repeat a request, for example after a timeout. The key prevents a second job. */
async function submitAgain(manifest: JobManifest, key: string): Promise<Job> {
  const answer = await submitJob(namespace, manifest, sending({ "Idempotency-Key": key }));
  if (answer.headers.get("Idempotency-Replayed") !== "true") {
    throw new Error("the key is new");
  }
  return expected(answer, 200, 201).data;
}

/** Wait until the job has ended. Each request returns at the next change, or with 304 after 30 seconds. */
async function follow(name: string): Promise<JobStatus> {
  let etag = "";
  for (;;) {
    const headers = { Prefer: "wait=30", ...(etag && { "If-None-Match": etag }) };
    const answer = await getJobStatus(namespace, name, sending(headers));
    if (answer.status === 304) {
      continue;
    }
    const job = expected(answer, 200).data;
    if (ended.includes(job.status.phase)) {
      return job;
    }
    etag = answer.headers.get("ETag") ?? "";
  }
}

/** Yield the changes of a job after a position of the feed. The SDK reads a stream as a whole, so `fetch` opens it. */
async function* watch(name: string, position: string): AsyncGenerator<WatchEvent> {
  const answer = await fetch(getWatchJobUrl(namespace, name), sending({ "Last-Event-ID": position }));
  if (!answer.ok || answer.body === null) {
    throw new Error(await answer.text());
  }
  let event = "";
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("event: ")) {
        event = line.slice("event: ".length);
      } else if (line.startsWith("data: ") && event === "job") {
        yield JSON.parse(line.slice("data: ".length)) as WatchEvent;
      }
    }
  }
}

/** Submit a manifest that is not valid, and return the errors of the answer. */
async function errorsOf(manifest: JobManifest): Promise<Problem> {
  const problem = expected(await submitJob(namespace, manifest, sending()), 422).data;
  for (const { pointer, detail } of problem.errors ?? []) {
    console.error(`${pointer}: ${detail}`);
  }
  return problem;
}

async function* pages(labelSelector: string): AsyncGenerator<Job[]> {
  const query: ListNamespaceJobsParams = { labelSelector, pageSize: 2 };
  for (;;) {
    const page = expected(await listNamespaceJobs(namespace, query, sending()), 200).data;
    if (page.view !== "full") {
      throw new Error("the page has summaries");
    }
    yield page.items;
    if (page.nextPageToken === null) {
      return;
    }
    query.pageToken = page.nextPageToken;
  }
}

/** Return the current position of the feed. A watch from this position misses no later change. */
async function feedPosition(): Promise<string> {
  const { headers } = await listNamespaceJobs(namespace, { pageSize: 1 }, sending());
  return headers.get("Jobgate-Feed-Position") ?? "";
}

/** Submit a SampleSet and a SampleJob, then delete both. The answer to a deletion is 202 while objects remain. */
async function cacheSamples(
  sampleSet: SampleSetManifest,
  sampleJob: SampleJobManifest,
): Promise<Record<string, string>> {
  const createdSet = expected(await submitSampleSet(namespace, sampleSet, sending()), 201).data;
  const createdJob = expected(await submitSampleJob(namespace, sampleJob, sending()), 201).data;
  while ((await deleteSampleJob(namespace, createdJob.name, {}, sending())).status === 202) {
    await setTimeout(500);
  }
  while ((await deleteSampleSet(namespace, createdSet.name, {}, sending())).status === 202) {
    await setTimeout(500);
  }
  return { SampleSet: createdSet.uid, SampleJob: createdJob.uid };
}

async function main(directory: string, selector: string): Promise<object> {
  const manifest = <T = JobManifest>(name: string): T =>
    JSON.parse(readFileSync(`${directory}/${name}.json`, "utf8")) as T;
  const position = await feedPosition();
  const key = randomUUID();
  const generic = await submit(manifest("generic-job"), key);
  const training = await submit(manifest("training-job"), randomUUID());
  const jobs = [
    generic,
    training,
    await submit(manifest("mx-job"), randomUUID()),
    await submit(manifest("di-job"), randomUUID()),
  ];

  const watched: string[] = [];
  for await (const event of watch(training.name, position)) {
    watched.push(event.object.status.phase);
    if (ended.includes(event.object.status.phase)) {
      break;
    }
  }

  const phases: Record<string, string> = {};
  for (const job of jobs) {
    phases[job.kind] = (await follow(job.name)).status.phase;
  }
  const replicas = expected(await listJobReplicas(namespace, generic.name, {}, sending()), 200).data;
  const history = expected(await listJobHistory(namespace, generic.name, {}, sending()), 200).data;
  const log = expected(await readJobLog(namespace, generic.name, { task: "worker", rank: 0 }, sending()), 200).data;
  const problem = await errorsOf(manifest("invalid"));
  const names: string[][] = [];
  for await (const page of pages(selector)) {
    names.push(page.map((job) => job.name));
  }
  return {
    jobs: Object.fromEntries(jobs.map((job) => [job.kind, job.uid])),
    phases,
    watched,
    replicas: replicas.items.map((replica) => `${replica.name} ${replica.phase} ${replica.exitCode}`),
    log,
    history: history.items.map((entry) => `${entry.phase} ${entry.reason}`),
    problem: { code: problem.code, pointers: (problem.errors ?? []).map((error) => error.pointer) },
    replayed: (await submitAgain(manifest("generic-job"), key)).uid,
    pages: names,
    samples: await cacheSamples(manifest("sample-set"), manifest("sample-job")),
  };
}

console.log(JSON.stringify(await main(process.argv[2] ?? "", process.argv[3] ?? "")));
