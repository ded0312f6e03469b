import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/problems";
import type { ClusterFinding } from "../src/api/types";
import { type Check, problemsOf } from "../src/submit/checks";
import { parseText } from "../src/submit/documents";
import { type ManifestRequest, requestsOf } from "../src/submit/requests";

const TEXT = "kind: GenericJob\nspec:\n  replicas: x\n";

function request(text: string): ManifestRequest {
  const [first] = requestsOf(parseText(text), [], "");
  if (first === undefined) throw new Error("the text has no manifest");
  return first;
}

const refused = (text: string, error: ApiError): Check => ({ request: request(text), items: [], error });

describe("problemsOf", () => {
  it("places each error of a refusal", () => {
    const errors = [
      { pointer: "/spec/replicas", code: "InvalidType", detail: "it is text", accepted: "a number" },
      { pointer: "/spec", code: "UnknownField", detail: "did you mean x?", accepted: "x" },
      { pointer: "/path/namespace", code: "NotFound", detail: "no such namespace", accepted: null },
    ];
    const found = problemsOf([refused(TEXT, new ApiError(422, "InvalidManifest", "not valid", errors))]);
    expect(found.map(({ severity, message, place }) => [severity, message, place?.line ?? null])).toEqual([
      ["error", "it is text. Accepted: a number", 3],
      ["error", "did you mean x? Accepted: x", 2],
      ["error", "no such namespace", null],
    ]);
  });

  it("reports a refusal that names no field", () => {
    const found = problemsOf([refused(TEXT, new ApiError(403, "Forbidden", "the role does not allow it"))]);
    expect(found).toEqual([
      { severity: "error", code: "Forbidden", field: "", message: "the role does not allow it", place: null },
    ]);
  });

  it.each([
    ["Fails", "error", "The job would fail: m (Pod a)"],
    ["Waits", "warning", "The job would wait: m (Pod a)"],
    ["Warns", "info", "The cluster warns: m (Pod a)"],
  ] as const)("places a finding that %s", (effect, severity, message) => {
    const text = `${TEXT}---\n${TEXT}`;
    const finding = { object: "Pod a", task: null, pointer: "/spec/replicas", effect, code: "C", detail: "m" };
    const cluster = { isComplete: true, detail: "", findings: [finding as ClusterFinding] };
    const items = [
      { manifest: {}, warnings: [] },
      { manifest: {}, warnings: [], cluster },
    ];
    const [found, ...others] = problemsOf([{ request: request(text), items, error: null }]);
    expect([found?.severity, found?.message, found?.place?.line]).toEqual([severity, message, 7]);
    expect(others).toEqual([]);
  });
});
