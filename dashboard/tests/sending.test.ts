import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/problems";
import type { Transport } from "../src/api/transport";
import type { Kind } from "../src/api/types";
import { parseText } from "../src/submit/documents";
import { requestsOf } from "../src/submit/requests";
import { dryRun, submit } from "../src/submit/sending";

const KINDS = [{ kind: "SampleSet", resource: "samplesets" }] as Kind[];
const requests = (text: string) => requestsOf(parseText(text), KINDS, "team/a");

interface Sent {
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** A transport that answers each request with the next answer. */
function transport(answers: (object | ApiError)[]): { sent: Sent[]; transport: Transport } {
  const sent: Sent[] = [];
  const post: Transport["post"] = async (path, headers, body) => {
    sent.push({ path, headers, body });
    const answer = answers.shift();
    if (answer instanceof ApiError) throw answer;
    return new Response(JSON.stringify(answer));
  };
  return { sent, transport: { post } as Transport };
}

const JOB = "kind: GenericJob";
const SET = "kind: SampleSet";
const stored = { uid: "1", namespace: "n", name: "x", kind: "GenericJob" };
const NO_SIGNAL = new AbortController().signal;

describe("submit", () => {
  it("posts one manifest to its collection, and several to the atomic batch, each with its own key", async () => {
    const { sent, transport: gateway } = transport([stored, { items: [{ object: stored }, { object: stored }] }]);
    const outcomes = await submit(gateway, requests(`${JOB}\n---\n${SET}\n---\n${SET}`), "key");
    expect(sent).toEqual([
      {
        path: "api/v1/namespaces/team%2Fa/jobs",
        headers: { "Content-Type": "application/yaml", "Idempotency-Key": "key-0" },
        body: JOB,
      },
      {
        path: "api/v1/namespaces/team%2Fa/samplesets/batch?atomic=true",
        headers: { "Content-Type": "application/yaml", "Idempotency-Key": "key-1" },
        body: `${SET}\n---\n${SET}`,
      },
    ]);
    expect(outcomes.map((outcome) => outcome.stored.length)).toEqual([1, 2]);
  });

  it("reports a refusal, and goes on with the other requests", async () => {
    const refusal = new ApiError(409, "NameTaken", "the name is taken");
    const outcomes = await submit(transport([refusal, stored]).transport, requests(`${JOB}\n---\n${SET}`), "key");
    expect(outcomes.map(({ error, stored }) => [error, stored.length])).toEqual([
      [refusal, 0],
      [null, 1],
    ]);
  });

  it.each([
    [503, "Unconfirmed"],
    [401, "InvalidToken"],
    [0, "NoAnswer"],
  ])("rejects after %i, which says nothing about the manifest", async (status, code) => {
    const { transport: gateway } = transport([new ApiError(status, code, "")]);
    await expect(submit(gateway, requests(JOB), "key")).rejects.toMatchObject({ code });
  });
});

describe("dryRun", () => {
  it("asks for the check of the mode, and returns items or the refusal", async () => {
    const refusal = new ApiError(422, "InvalidManifest", "not valid");
    const { sent, transport: gateway } = transport([{ items: [{ manifest: {} }] }, refusal]);
    const checks = await dryRun(gateway, requests(`${JOB}\n---\n${SET}`), "Local", NO_SIGNAL);
    expect(sent.map((each) => each.path)).toEqual([
      "api/v1/namespaces/team%2Fa/jobs/dry-run?dryRun=Local",
      "api/v1/namespaces/team%2Fa/samplesets/dry-run?dryRun=Local",
    ]);
    expect(checks.map(({ items, error }) => [items.length, error])).toEqual([
      [1, null],
      [0, refusal],
    ]);
  });
});
