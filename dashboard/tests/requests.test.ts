import { describe, expect, it } from "vitest";
import type { Kind } from "../src/api/types";
import { parseText } from "../src/submit/documents";
import { fieldInDocument, isSeveral, placeInItem, placeInRequest, requestsOf } from "../src/submit/requests";

const KINDS = [
  { kind: "GenericJob", resource: "jobs" },
  { kind: "SampleSet", resource: "samplesets" },
] as Kind[];

const requests = (text: string, namespace = "") => requestsOf(parseText(text), KINDS, namespace);
const summary = (text: string, namespace = "") =>
  requests(text, namespace).map((each) => [each.namespace, each.resource, each.body]);

const JOB = "kind: GenericJob\nmetadata: {name: a}";
const SET = "kind: SampleSet\nmetadata: {name: s, namespace: team}";

describe("requestsOf", () => {
  it.each([
    ["", []],
    [JOB, [["default", "jobs", JOB]]],
    ["kind: Secret", [["default", "jobs", "kind: Secret"]]],
    [SET, [["team", "samplesets", SET]]],
    [`${JOB}\n---\n${JOB}`, [["default", "jobs", `${JOB}\n---\n${JOB}`]]],
  ])("sends %j as it is", (text, expected) => expect(summary(text)).toEqual(expected));

  it("uses the chosen namespace only for manifests that name none", () => {
    expect(summary(`${JOB}\n---\n${SET}\n---\n${JOB}\n`, " mine ")).toEqual([
      ["mine", "jobs", `${JOB}\n---\n${JOB}`],
      ["team", "samplesets", SET],
    ]);
  });

  it("sends a List by itself, to the route of its items", () => {
    const list = "kind: List\nitems:\n  - kind: SampleSet";
    expect(summary(`${list}\n---\nkind: SampleSet\n---\n${list}`)).toEqual([
      ["default", "samplesets", list],
      ["default", "samplesets", "kind: SampleSet"],
      ["default", "samplesets", list],
    ]);
  });

  it.each([
    ['{"kind": "GenericJob"}', "application/json"],
    ["{kind: GenericJob}", "application/yaml"],
    ["kind: GenericJob", "application/yaml"],
  ])("declares the type of %j", (text, type) => expect(requests(text)[0]?.contentType).toBe(type));

  it.each([
    [JOB, false],
    [`${JOB}\n---\n${JOB}`, true],
    ["kind: List\nitems: [{kind: GenericJob}]", true],
  ])("knows whether %j has several manifests", (text, several) => {
    expect(requests(text).map(isSeveral)).toEqual([several]);
  });
});

describe("placeInRequest", () => {
  const line = (text: string, request: number, pointer: string) => {
    const found = requests(text)[request];
    return found === undefined ? undefined : (placeInRequest(found, pointer)?.line ?? null);
  };

  it.each([
    [JOB, 0, "/metadata/name", 2],
    [`${JOB}\n---\n${JOB}`, 0, "/items/1/metadata/name", 5],
    [`${JOB}\n---\n${JOB}`, 0, "/items/7/kind", null],
    [`${JOB}\n---\n${SET}\n---\n${JOB}`, 1, "/metadata/name", 5],
    [`${JOB}\n---\n${SET}\n---\n${JOB}`, 0, "/items/1/metadata/name", 8],
    ["kind: List\nitems:\n  - kind: GenericJob", 0, "/items/0/kind", 3],
    [JOB, 0, "/path/namespace", null],
    [JOB, 0, "/header/Idempotency-Key", null],
  ])("%j, request %i: %s", (text, request, pointer, expected) => expect(line(text, request, pointer)).toBe(expected));

  it.each([
    [JOB, 0, 2],
    [`${JOB}\n---\n${JOB}`, 1, 5],
    ["kind: List\nitems:\n  - kind: GenericJob\n    metadata: {name: x}", 0, 4],
  ])("finds the manifest of an item of the answer to %j", (text, item, expected) => {
    const [request] = requests(text);
    expect(request && placeInItem(request, item, "/metadata/name")?.line).toBe(expected);
  });
});

describe("fieldInDocument", () => {
  it.each([
    [JOB, "/metadata/name", "/metadata/name"],
    [`${JOB}\n---\n${JOB}`, "/items/1/metadata/name", "/metadata/name"],
    [`${JOB}\n---\n${JOB}`, "/path/namespace", "/path/namespace"],
    ["kind: List\nitems:\n  - kind: GenericJob", "/items/0/kind", "/items/0/kind"],
  ])("%j: %s", (text, pointer, expected) => {
    const [request] = requests(text);
    expect(request && fieldInDocument(request, pointer)).toBe(expected);
  });
});
