import { describe, expect, it } from "vitest";
import { byKind, EXAMPLES, exampleOf } from "../src/submit/examples";

describe("exampleOf", () => {
  it("reads the name, the kind and the first sentence", () => {
    const text = "# Fails, then\n# succeeds. More:\n#   x\nkind: GenericJob\n";
    expect(exampleOf("../../examples/generic-job/flaky.yaml", text)).toEqual({
      id: "generic-job/flaky",
      kind: "GenericJob",
      name: "flaky",
      description: "Fails, then succeeds.",
      text,
    });
  });
});

describe("EXAMPLES", () => {
  it("has examples of every kind, each with a description, and no Secret", () => {
    expect(byKind(EXAMPLES).map(([kind]) => kind)).toEqual([
      "DIJob",
      "GenericJob",
      "MxJob",
      "SampleJob",
      "SampleSet",
      "TrainingJob",
    ]);
    expect(EXAMPLES.filter((example) => example.description === "")).toEqual([]);
  });
});
