/** What the editor suggests at the cursor, from the schemas of the kinds. Pure. */
import type { Kind } from "../api/types";
import { type Cursor, cursorAt } from "./cursor";
import type { Located, Schema, SchemaReader } from "./schema";

export interface Suggestion {
  label: string;
  kind: "property" | "value";
  /** The type of a property, and whether it is required. */
  detail: string;
  description: string;
  isRequired: boolean;
  /** The text that replaces the word at the cursor. */
  insert: string;
}

export interface Suggestions {
  from: number;
  to: number;
  options: Suggestion[];
}

export function suggest(
  text: string,
  offset: number,
  kinds: readonly Kind[],
  reader: SchemaReader,
): Suggestions | null {
  const cursor = cursorAt(text, offset);
  if (cursor === null) return null;
  const schema = schemaFor(cursor, kinds);
  const schemas = reader.at(schema, cursor.path);
  const options = cursor.position === "key" ? properties(cursor, schemas, reader) : [];
  if (options.length === 0) {
    // The item of a list may be a value: the parser saw a key only because a colon was added.
    const isItem = cursor.position === "key" && cursor.siblings.length === 0;
    if (cursor.position === "value" || isItem) options.push(...values(schemas, reader));
  }
  return options.length === 0 ? null : { from: cursor.from, to: cursor.to, options };
}

/** Return the schema of the manifest, or that of any manifest as long as its kind is unknown. */
function schemaFor(cursor: Cursor, kinds: readonly Kind[]): Schema {
  const kind = kinds.find((each) => each.kind === cursor.kind);
  if (kind !== undefined) return kind.jsonSchema;
  const ofVersion = kinds.filter((each) => each.apiVersions.includes(cursor.apiVersion));
  const fitting = ofVersion.length === 0 ? kinds : ofVersion;
  const versions = [...new Set(kinds.flatMap((each) => each.apiVersions))];
  return {
    type: "object",
    required: ["apiVersion", "kind", "metadata", "spec"],
    properties: {
      apiVersion: { enum: versions, description: "The version of the kind." },
      kind: { enum: fitting.map((each) => each.kind), description: "Name of the kind." },
      metadata: { type: "object", description: "Name, namespace, labels and annotations of the object." },
      spec: { type: "object", description: "The spec of the kind. Write the kind first." },
    },
  };
}

function properties(cursor: Cursor, schemas: readonly Located[], reader: SchemaReader): Suggestion[] {
  const found = [...reader.properties(schemas)].filter(([name]) => !cursor.siblings.includes(name));
  return found.map(([name, property]) => {
    const { text, type, default: value } = reader.describe(property.schemas);
    const notes = [text, value === null ? "" : `Default: ${value}.`, accepted(reader.values(property.schemas))];
    return {
      label: name,
      kind: "property",
      detail: property.isRequired ? `${type}, required` : type,
      description: notes.filter((note) => note !== "").join(" "),
      isRequired: property.isRequired,
      insert: insertion(cursor, name, property.schemas, reader),
    };
  });
}

function accepted(listed: readonly string[]): string {
  return listed.length === 0 ? "" : `Accepted: ${listed.join(", ")}.`;
}

function values(schemas: readonly Located[], reader: SchemaReader): Suggestion[] {
  const description = reader.describe(schemas).text;
  return reader
    .values(schemas)
    .map((value) => ({ label: value, kind: "value", detail: "", description, isRequired: false, insert: value }));
}

/** Return the key with what follows it: a new indented line for a mapping or a list. */
function insertion(cursor: Cursor, name: string, schemas: readonly Located[], reader: SchemaReader): string {
  if (cursor.hasColon || cursor.quote !== "") return name;
  const indent = `\n${" ".repeat(cursor.column + 2)}`;
  if (cursor.isFlow) return `${name}: `;
  if (reader.isArray(schemas)) return `${name}:${indent}- `;
  return reader.isObject(schemas) ? `${name}:${indent}` : `${name}: `;
}
