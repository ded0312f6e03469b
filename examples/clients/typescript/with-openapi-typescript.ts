/**
 * Uses the types that openapi-typescript generates, with openapi-fetch: submits a job of each kind, follows it, and reads
 * its results.
 *
 * Usage: JOBGATE_URL=http://127.0.0.1:8080 node compiled/with-openapi-typescript.js MANIFESTS LABEL_SELECTOR
 */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];
type JobManifest = Schemas["JobManifest"];

const namespace = process.env["JOBGATE_NAMESPACE"] ?? "default";
const ended = ["Succeeded", "Failed", "TimedOut", "Cancelled"];

const client = createClient<paths>({
  baseUrl: process.env["JOBGATE_URL"] ?? "http://127.0.0.1:8080",
  headers: { Authorization: `Bearer ${process.env["JOBGATE_TOKEN"] ?? "none"}` }, // `jobgate dev` needs no token
});

/** Return the data of an answer, or throw the problem that it contains. */
function dataOf<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) {
    throw new Error(JSON.stringify(answer.error));
  }
  return answer.data;
}

async function submit(manifest: JobManifest, key: string): Promise<Schemas["Job"]> {
  return dataOf(
    await client.POST("/api/v1/namespaces/{namespace}/jobs", {
      params: { path: { namespace }, header: { "Idempotency-Key": key } },
      body: manifest,
    }),
  );
}

/** Repeat a request, for example after a timeout. The key prevents a second job. */
async function submitAgain(manifest: JobManifest, key: string): Promise<Schemas["Job"]> {
  const answer = await client.POST("/api/v1/namespaces/{namespace}/jobs", {
    params: { path: { namespace }, header: { "Idempotency-Key": key } },
    body: manifest,
  });
  if (answer.response.headers.get("Idempotency-Replayed") !== "true") {
    throw new Error("the key is new");
  }
  return dataOf(answer);
}

/** Wait until the job has ended. Each request returns at the next change, or with 304 after 30 seconds. */
async function follow(name: string): Promise<Schemas["JobStatus"]> {
  let etag = "";
  for (;;) {
    const answer = await client.GET("/api/v1/namespaces/{namespace}/jobs/{name}/status", {
      params: { path: { namespace, name }, header: { prefer: "wait=30", ...(etag && { "If-None-Match": etag }) } },
    });
    if (answer.response.status === 304) {
      continue;
    }
    const job = dataOf(answer);
    if (ended.includes(job.status.phase)) {
      return job;
    }
    etag = answer.response.headers.get("ETag") ?? "";
  }
}

/** Yield the changes of a job after a position of the feed. openapi-fetch does not decode server-sent events. */
async function* watch(name: string, position: string): AsyncGenerator<Schemas["WatchEvent"]> {
  const stream = dataOf(
    await client.GET("/api/v1/namespaces/{namespace}/jobs/{name}/watch", {
      params: { path: { namespace, name }, header: { "Last-Event-ID": position } },
      parseAs: "stream",
    }),
  );
  let event = "";
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("event: ")) {
        event = line.slice("event: ".length);
      } else if (line.startsWith("data: ") && event === "job") {
        yield JSON.parse(line.slice("data: ".length)) as Schemas["WatchEvent"];
      }
    }
  }
}

/** Submit a manifest that is not valid, and return the errors of the answer. */
async function errorsOf(manifest: JobManifest): Promise<Schemas["Problem"]> {
  const { error, response } = await client.POST("/api/v1/namespaces/{namespace}/jobs", {
    params: { path: { namespace } },
    body: manifest,
  });
  if (response.status !== 422 || error === undefined) {
    throw new Error(`the answer has the status ${response.status}`);
  }
  for (const { pointer, detail } of error.errors ?? []) {
    console.error(`${pointer}: ${detail}`);
  }
  return error;
}

async function* pages(labelSelector: string): AsyncGenerator<Schemas["Job"][]> {
  const query: { labelSelector: string; pageSize: number; pageToken?: string } = { labelSelector, pageSize: 2 };
  for (;;) {
    const page = dataOf(
      await client.GET("/api/v1/namespaces/{namespace}/jobs", { params: { path: { namespace }, query } }),
    );
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
  const { response } = await client.GET("/api/v1/namespaces/{namespace}/jobs", {
    params: { path: { namespace }, query: { pageSize: 1 } },
  });
  return response.headers.get("Jobgate-Feed-Position") ?? "";
}

/** Submit a SampleSet and a SampleJob, then delete both. The answer to a deletion is 202 while objects remain. */
async function cacheSamples(
  sampleSet: Schemas["SampleSetManifest"],
  sampleJob: Schemas["SampleJobManifest"],
): Promise<Record<string, string>> {
  const path = { namespace };
  const createdSet = dataOf(
    await client.POST("/api/v1/namespaces/{namespace}/samplesets", { params: { path }, body: sampleSet }),
  );
  const createdJob = dataOf(
    await client.POST("/api/v1/namespaces/{namespace}/samplejobs", { params: { path }, body: sampleJob }),
  );
  const ofJob = { params: { path: { namespace, name: createdJob.name } } };
  while ((await client.DELETE("/api/v1/namespaces/{namespace}/samplejobs/{name}", ofJob)).response.status === 202) {
    await setTimeout(500);
  }
  const ofSet = { params: { path: { namespace, name: createdSet.name } } };
  while ((await client.DELETE("/api/v1/namespaces/{namespace}/samplesets/{name}", ofSet)).response.status === 202) {
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
  const path = { namespace, name: generic.name };
  const replicas = dataOf(
    await client.GET("/api/v1/namespaces/{namespace}/jobs/{name}/replicas", { params: { path } }),
  );
  const history = dataOf(await client.GET("/api/v1/namespaces/{namespace}/jobs/{name}/history", { params: { path } }));
  const log = dataOf(
    await client.GET("/api/v1/namespaces/{namespace}/jobs/{name}/logs", {
      params: { path, query: { task: "worker", rank: 0 } },
      parseAs: "text",
    }),
  );
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
