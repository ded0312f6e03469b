/**
 * The manifests of a text: YAML documents or one JSON document, with their places in the text. Pure.
 *
 * The gateway reads the text itself. This module only finds what each document is and where its fields are.
 */
import { type Document, isScalar, parseAllDocuments } from "yaml";

export interface ManifestDocument {
  /** The parsed document. The offsets of its nodes are those of the whole text. */
  root: Document.Parsed;
  kind: string;
  /** The namespace that the manifest names; null if it names none. That of a List is that of its first item. */
  namespace: string | null;
  name: string;
  isList: boolean;
  /** The kind of the manifest, or of the first item of a List. */
  itemKind: string;
  /** The offsets of the first line and of the end of the document. */
  from: number;
  to: number;
}

/** Something that is wrong at a place of the text. */
export interface TextProblem {
  severity: "error" | "warning" | "info";
  code: string;
  /** The JSON pointer of the field; empty if the problem concerns the whole manifest. A missing field has no line. */
  field: string;
  message: string;
  /** Null if the problem concerns no place of the text, such as the namespace of the request. */
  place: Place | null;
}

export interface Place {
  from: number;
  to: number;
  /** From 1. */
  line: number;
}

export interface ManifestText {
  text: string;
  documents: readonly ManifestDocument[];
  /** Errors of the syntax. A text with errors has places, but cannot be sent. */
  problems: readonly TextProblem[];
}

export function parseText(text: string): ManifestText {
  const parsed = parseAllDocuments(text, { prettyErrors: false, logLevel: "silent" });
  const roots = "empty" in parsed ? [] : parsed;
  const problems = roots.flatMap((root) =>
    root.errors.map((error) => ({
      severity: "error" as const,
      code: "Syntax",
      field: "",
      message: error.message,
      place: placeOf(text, error.pos[0], error.pos[1]),
    })),
  );
  return { text, documents: roots.filter((root) => !isEmpty(root)).map((root) => documentOf(text, root)), problems };
}

/** Return the place of these offsets, within one line. */
export function placeOf(text: string, from: number, to: number): Place {
  const start = Math.min(from, text.length);
  const end = text.indexOf("\n", start);
  const lineEnd = end < 0 ? text.length : end;
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < start; at = text.indexOf("\n", at + 1)) line += 1;
  return { from: start, to: Math.max(start, Math.min(to, lineEnd)), line };
}

function isEmpty(root: Document.Parsed): boolean {
  const { contents } = root;
  return contents === null || (isScalar(contents) && contents.value === null && root.errors.length === 0);
}

function documentOf(text: string, root: Document.Parsed): ManifestDocument {
  const kind = textAt(root, ["kind"]);
  const isList = kind === "List";
  const manifest = isList ? ["items", 0] : [];
  const [start, end] = root.contents === null ? root.range : root.contents.range;
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  // A document may begin on the line of its marker: `--- {…}`.
  const isMarked = text.startsWith("---", lineStart);
  return {
    root,
    kind,
    namespace: textAt(root, [...manifest, "metadata", "namespace"]) || null,
    name: textAt(root, [...manifest, "metadata", "name"]) || textAt(root, [...manifest, "metadata", "generateName"]),
    isList,
    itemKind: textAt(root, [...manifest, "kind"]),
    from: isMarked ? start : lineStart,
    to: end,
  };
}

function textAt(root: Document.Parsed, path: readonly (string | number)[]): string {
  const value = root.getIn(path);
  return typeof value === "string" ? value : "";
}
