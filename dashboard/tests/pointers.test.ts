import { describe, expect, it } from "vitest";
import { parseText } from "../src/submit/documents";
import { placeAt, stepsOf } from "../src/submit/pointers";

function marked(text: string, pointer: string, index = 0): [number, string] {
  const document = parseText(text).documents[index];
  if (document === undefined) throw new Error("the text has no such document");
  const { line, from, to } = placeAt(text, document.root, pointer);
  return [line, text.slice(from, to)];
}

const MANIFEST = `# comment
kind: GenericJob
metadata:
  labels: {"a/b": x}
spec:
  replicaSpecs:
    - type: worker
      replicas: two
      template:
        spec:
          containers:
            - args:
                - first
                - |
                  several
                  lines
`;

describe("placeAt", () => {
  it.each([
    ["/kind", [2, "kind: GenericJob"]],
    ["/metadata", [3, "metadata"]],
    ["/metadata/labels/a~1b", [4, '"a/b": x']],
    ["/spec/replicaSpecs/0", [7, "type: worker"]],
    ["/spec/replicaSpecs/0/replicas", [8, "replicas: two"]],
    ["/spec/replicaSpecs/0/template/spec/containers/0/args/0", [13, "first"]],
    ["/spec/replicaSpecs/0/template/spec/containers/0/args/1", [14, "|"]],
  ])("finds %s", (pointer, place) => expect(marked(MANIFEST, pointer)).toEqual(place));

  it.each([
    ["", [2, "kind: GenericJob"]],
    ["/metadata/name", [3, "metadata"]],
    ["/spec/replicaSpecs/7/type", [6, "replicaSpecs"]],
    ["/spec/replicaSpecs/0/template/spec/containers/0/image", [12, "args:"]],
    ["/status/x", [2, "kind: GenericJob"]],
  ])("names what is around the missing %j", (pointer, place) => expect(marked(MANIFEST, pointer)).toEqual(place));

  it("finds places in the second document and in JSON", () => {
    expect(marked("a: 1\n---\nb:\n  - c: 2\n", "/b/0/c", 1)).toEqual([4, "c: 2"]);
    expect(marked('{\n  "b": [\n    {"c": 2}\n  ]\n}', "/b/0/c")).toEqual([3, '"c": 2']);
  });

  it("follows aliases and merges to what they repeat", () => {
    const text = "base: &base\n  a: 1\nlist: [&item {b: 2}]\nx: *base\ny:\n  <<: [*item, *base]\n";
    expect(marked(text, "/x/a")).toEqual([2, "a: 1"]);
    expect(marked(text, "/y/a")).toEqual([2, "a: 1"]);
    expect(marked(text, "/y/b")).toEqual([3, "b: 2"]);
  });

  it("ends in a merge that contains itself", () => {
    expect(marked("a: &a\n  <<: *a\n", "/a/missing")).toEqual([1, "a"]);
  });
});

describe("stepsOf", () => {
  it.each([
    ["", []],
    ["/a/b", ["a", "b"]],
    ["/a~1b/~01/", ["a/b", "~1", ""]],
  ])("splits %j", (pointer, steps) => expect(stepsOf(pointer)).toEqual(steps));
});
