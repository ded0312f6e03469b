import { describe, expect, it } from "vitest";
import { parseText, placeOf } from "../src/submit/documents";

const read = (text: string) =>
  parseText(text).documents.map(({ kind, itemKind, namespace, name, isList, from, to }) => ({
    kind,
    itemKind,
    namespace,
    name,
    isList,
    source: text.slice(from, to),
  }));

describe("parseText", () => {
  it("finds kind, name and namespace of each document, and leaves empty ones out", () => {
    const text = "# a\n---\nkind: A\nmetadata: {name: a, namespace: team}\n---\n# empty\n---\n  kind: B\n";
    expect(read(text)).toEqual([
      {
        kind: "A",
        itemKind: "A",
        namespace: "team",
        name: "a",
        isList: false,
        source: "kind: A\nmetadata: {name: a, namespace: team}\n",
      },
      { kind: "B", itemKind: "B", namespace: null, name: "", isList: false, source: "  kind: B\n" },
    ]);
  });

  it.each([
    ["JSON", '{"kind": "A", "metadata": {"generateName": "a-"}}', "a-"],
    ["a mapping on the line of the marker", "--- {kind: A, metadata: {name: x}}", "x"],
  ])("reads %s", (_, text, name) => {
    const [document] = read(text);
    expect(document).toMatchObject({ kind: "A", name, source: text.replace("--- ", "") });
  });

  it("takes the kind and the namespace of a List from its first item", () => {
    const text = "kind: List\nitems:\n  - kind: SampleSet\n    metadata: {namespace: n}\n";
    expect(read(text)[0]).toMatchObject({ isList: true, itemKind: "SampleSet", namespace: "n" });
  });

  it.each([
    ["", 0],
    ["  \n# only a comment\n", 0],
    ["text", 1],
  ])("counts the documents of %j", (text, count) => expect(parseText(text).documents).toHaveLength(count));

  it("reports errors of the syntax at their lines", () => {
    const { problems } = parseText("kind: A\nspec:\n  a: [1\n---\nkind: B\nkind: C\n");
    expect(problems.map(({ code, place }) => [code, place?.line])).toEqual([
      ["Syntax", 4],
      ["Syntax", 6],
    ]);
  });
});

describe("placeOf", () => {
  it.each([
    [0, 1, { from: 0, to: 1, line: 1 }],
    [2, 9, { from: 2, to: 4, line: 2 }],
    [5, 6, { from: 5, to: 6, line: 3 }],
    [99, 99, { from: 6, to: 6, line: 3 }],
  ])("clips %i to %i to one line of the text", (from, to, place) =>
    expect(placeOf("a\nbc\nd", from, to)).toEqual(place),
  );
});
