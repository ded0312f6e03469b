import { describe, expect, it } from "vitest";
import type { Kind } from "../src/api/types";
import { suggest } from "../src/submit/completion";
import { SchemaReader } from "../src/submit/schema";

const KUBERNETES = {
  $defs: {
    PodTemplateSpec: { type: "object", properties: { spec: { $ref: "#/$defs/PodSpec" } } },
    PodSpec: {
      type: "object",
      required: ["containers"],
      properties: {
        containers: { type: "array", items: { type: "object", properties: { image: { type: "string" } } } },
        restartPolicy: { enum: ["", "Always", "Never"], type: "string" },
      },
    },
  },
};

const GENERIC = {
  type: "object",
  required: ["apiVersion", "kind", "metadata", "spec"],
  properties: {
    apiVersion: { enum: ["batch/v1"], description: "The version of the kind." },
    kind: { const: "GenericJob" },
    metadata: { type: "object", properties: { name: { type: "string" }, labels: { type: "object" } } },
    spec: { $ref: "#/$defs/Spec" },
  },
  $defs: {
    Spec: {
      type: "object",
      required: ["replicaSpecs"],
      properties: {
        cleanUpPolicy: {
          type: "string",
          enum: ["None", "All"],
          default: "None",
          description: "Which pods are deleted.",
        },
        paused: { anyOf: [{ type: "boolean" }, { type: "null" }] },
        modes: { type: "array", items: { enum: ["fast", "slow"] } },
        replicaSpecs: { type: "array", items: { $ref: "#/$defs/Replica" } },
        byName: { type: "object", additionalProperties: { $ref: "#/$defs/Replica" } },
      },
    },
    Replica: {
      type: "object",
      properties: {
        type: { type: "string" },
        replicas: { type: "integer" },
        template: { type: "object", "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec" },
      },
    },
  },
};

const KINDS = [
  { kind: "GenericJob", apiVersions: ["batch/v1"], jsonSchema: GENERIC },
  { kind: "MxJob", apiVersions: ["mx/v1"], jsonSchema: {} },
] as unknown as Kind[];
const READER = new SchemaReader(KUBERNETES);

/** Complete at the bar in the text. */
function at(text: string) {
  const offset = text.indexOf("|");
  return suggest(text.replace("|", ""), offset, KINDS, READER);
}
const labels = (text: string) => at(text)?.options.map((option) => option.label) ?? null;

const HEAD = "apiVersion: batch/v1\nkind: GenericJob\n";

describe("suggest", () => {
  it.each([
    ["the keys of an empty text", "|", ["apiVersion", "kind", "metadata", "spec"]],
    ["the missing keys", `${HEAD}|`, ["metadata", "spec"]],
    ["kinds", "kind: |", ["GenericJob", "MxJob"]],
    ["kinds of the version", "apiVersion: mx/v1\nkind: M|", ["MxJob"]],
    ["versions", "apiVersion: b|", ["batch/v1", "mx/v1"]],
    ["keys on a new line", `${HEAD}spec:\n  |`, ["cleanUpPolicy", "paused", "modes", "replicaSpecs", "byName"]],
    [
      "keys after a started one",
      `${HEAD}spec:\n  paused: true\n  cl|`,
      ["cleanUpPolicy", "modes", "replicaSpecs", "byName"],
    ],
    ["a key before others", `${HEAD}metadata:\n  |\nspec:\n  paused: true\n`, ["name", "labels"]],
    ["enumerated values", `${HEAD}spec:\n  cleanUpPolicy: N|`, ["None", "All"]],
    ["booleans", `${HEAD}spec:\n  paused: |`, ["true", "false"]],
    ["values of a list", `${HEAD}spec:\n  modes:\n    - |`, ["fast", "slow"]],
    ["values of a list in brackets", `${HEAD}spec:\n  modes: [fast, s|]`, ["fast", "slow"]],
    ["keys of the items of a list", `${HEAD}spec:\n  replicaSpecs:\n    - type: a\n      |`, ["replicas", "template"]],
    ["the first key of an item", `${HEAD}spec:\n  replicaSpecs:\n    - |`, ["type", "replicas", "template"]],
    ["keys of any named object", `${HEAD}spec:\n  byName:\n    x:\n      |`, ["type", "replicas", "template"]],
    ["keys in braces", `${HEAD}spec:\n  replicaSpecs: [{type: a, |}]`, ["replicas", "template"]],
    [
      "Kubernetes types",
      `${HEAD}spec:\n  replicaSpecs:\n    - template:\n        spec:\n          |`,
      ["containers", "restartPolicy"],
    ],
    [
      "values of Kubernetes types",
      `${HEAD}spec:\n  replicaSpecs:\n    - template:\n        spec:\n          restartPolicy: |`,
      ["Always", "Never"],
    ],
    ["the kind of the document around the cursor", `kind: MxJob\n---\n${HEAD}metadata:\n  |`, ["name", "labels"]],
    ["the items of a List", `kind: List\nitems:\n  - kind: GenericJob\n    metadata:\n      |`, ["name", "labels"]],
    ["keys of JSON", '{\n  "kind": "GenericJob",\n  "metadata": {\n    "|"\n  }\n}', ["name", "labels"]],
    ["values of JSON", '{"kind":"|"}', ["GenericJob", "MxJob"]],
  ])("offers %s", (_, text, expected) => expect(labels(text)).toEqual(expected));

  it.each([
    ["a comment", `${HEAD}# sp|`],
    ["a text", `${HEAD}spec:\n  byName: |x`.replace("|x", "some text|")],
    ["a block of text", `${HEAD}metadata:\n  name: >\n    lo|\n`],
    ["a value without a list of values", `${HEAD}metadata:\n  name: a|`],
    ["an unknown path", `${HEAD}spec:\n  unknown:\n    |`],
  ])("offers nothing in %s", (_, text) => expect(labels(text)).toBeNull());

  it.each([
    ["a scalar", `${HEAD}spec:\n  cl|`, "cleanUpPolicy", "cleanUpPolicy: "],
    ["an object", `${HEAD}met|`, "metadata", "metadata:\n  "],
    ["a list", `${HEAD}spec:\n  re|`, "replicaSpecs", "replicaSpecs:\n    - "],
    ["an item of a list", `${HEAD}spec:\n  replicaSpecs:\n    - te|`, "template", "template:\n        "],
    ["a key in braces", `${HEAD}spec: {re|}`, "replicaSpecs", "replicaSpecs: "],
    ["a complete key", `${HEAD}spec:\n  cl|: All`, "cleanUpPolicy", "cleanUpPolicy"],
    ["a key of JSON", '{"kind": "GenericJob", "me|": {}}', "metadata", "metadata"],
  ])("inserts %s", (_, text, label, insert) => {
    expect(at(text)?.options.find((option) => option.label === label)?.insert).toBe(insert);
  });

  it("replaces the word around the cursor", () => {
    const found = at(`${HEAD}spec:\n  clean|Up: All`);
    expect(found && [found.from, found.to]).toEqual([HEAD.length + 8, HEAD.length + 15]);
  });

  it("describes a property", () => {
    const found = at(`${HEAD}spec:\n  |`);
    expect(found?.options[0]).toMatchObject({
      detail: "string",
      description: 'Which pods are deleted. Default: "None". Accepted: None, All.',
      isRequired: false,
    });
    expect(found?.options[3]).toMatchObject({ detail: "array of object, required", isRequired: true });
  });

  it("ends in a schema that refers to itself", () => {
    const endless = {
      kind: "E",
      apiVersions: ["e/v1"],
      jsonSchema: { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } },
    };
    expect(suggest("kind: E\n", 8, [endless as unknown as Kind], READER)).toBeNull();
  });
});
