import { expect, test } from "vitest";
import { describe, FORMS } from "../../src/job/manifest/forms";
import { titleOf } from "../../src/job/manifest/titles";
import { manifestOf, yamlOf } from "../../src/ui/yaml";
import { job } from "./builders";

test("writes the manifest of a job as YAML", () => {
  const spec = { args: ["a: b", "line 1\nline 2\n"], replicas: 2, on: "yes", mode: "0400" };
  const text = yamlOf(manifestOf(job({}, { labels: { team: "vision" }, spec })));
  expect(text).toBe(`apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
metadata:
  name: train
  namespace: team-a
  labels:
    team: vision
spec:
  args:
    - "a: b"
    - |
      line 1
      line 2
  replicas: 2
  "on": "yes"
  mode: "0400"
`);
});

test("repeats equal objects, and does not break lines", () => {
  const shared = { text: "word ".repeat(40) };
  expect(yamlOf({ a: shared, b: shared })).not.toMatch(/[&*]a1|>-/);
});

test.each([
  [{ kind: "Pod", metadata: { name: "train-worker-0" } }, "Pod train-worker-0"],
  [{ kind: "Pod" }, "Pod"],
  [{}, "object"],
])("names %o", (object, title) => {
  expect(titleOf(object)).toBe(title);
});

test("offers the manifest as posted first", () => {
  expect(FORMS.map(([form]) => form)).toEqual(["posted", "complete"]);
});

test.each([
  ["posted", true, /^The document of the last submission or PUT/],
  ["posted", false, /^It is not known how this manifest was posted/],
  ["complete", true, /with defaults filled in: generation 3/],
] as const)("describes the form %s", (form, isKnown, text) => {
  expect(describe(form, isKnown, 3)).toMatch(text);
});

test("writes a posted manifest in the order of its fields", () => {
  const posted = {
    kind: "GenericJob",
    apiVersion: "v1",
    spec: { b: null, a: 1.5 },
    metadata: { generateName: "run-" },
  };
  expect(yamlOf(posted)).toBe(`kind: GenericJob
apiVersion: v1
spec:
  b: null
  a: 1.5
metadata:
  generateName: run-
`);
});
