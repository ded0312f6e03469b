/** Reads JSON schemas (draft 2020-12), as far as the editor needs them. Pure. */

export type Schema = Readonly<Record<string, unknown>>;

/** A schema and the document in which its references are resolved. */
export interface Located {
  schema: Schema;
  document: Schema;
}

/** The field that names the Kubernetes type of a value whose schema the gateway does not repeat. */
const KUBERNETES_TYPE = "x-kubernetes-type";
/** References that are followed, so that a schema that refers to itself ends. */
const MAX_DEPTH = 16;
const COMBINED = ["anyOf", "oneOf", "allOf"] as const;

/** What a property is, for people. */
export interface Description {
  text: string;
  /** Such as `integer`, or `array of string`. */
  type: string;
  /** As JSON; null if there is none. */
  default: string | null;
}

/**
 * Resolves paths in the schema of a manifest.
 *
 * `kubernetes` is a schema document that defines the Kubernetes types which the schema only names.
 */
export class SchemaReader {
  constructor(private readonly kubernetes: Schema) {}

  /** Return the schemas of the value at the path. Numbers are the steps into arrays. */
  at(document: Schema, path: readonly (string | number)[]): Located[] {
    let present = this.#expanded([{ schema: document, document }]);
    for (const step of path) present = this.#expanded(present.flatMap((each) => stepInto(each, step)));
    return present;
  }

  /** Return the properties of a value with these schemas, and which of them are required. */
  properties(schemas: readonly Located[]): Map<string, { schemas: Located[]; isRequired: boolean }> {
    const found = new Map<string, { schemas: Located[]; isRequired: boolean }>();
    for (const { schema, document } of schemas) {
      for (const [name, property] of Object.entries(recordOf(schema.properties))) {
        const known = found.get(name) ?? { schemas: [], isRequired: false };
        known.schemas.push(...this.#expanded([{ schema: recordOf(property), document }]));
        known.isRequired ||= arrayOf(schema.required).includes(name);
        found.set(name, known);
      }
    }
    return found;
  }

  /** Return the values that the schemas list; empty if they permit others. */
  values(schemas: readonly Located[]): string[] {
    const found = schemas.flatMap(({ schema }) => [
      ...arrayOf(schema.enum),
      ...("const" in schema ? [schema.const] : []),
      ...(typesOf(schema).includes("boolean") ? [true, false] : []),
    ]);
    return [...new Set(found.map(String))].filter((value) => value !== "" && value !== "null");
  }

  describe(schemas: readonly Located[]): Description {
    const texts = schemas.map(({ schema }) => schema.description).filter((text) => typeof text === "string");
    const withDefault = schemas.find(({ schema }) => "default" in schema);
    const types = schemas.flatMap(({ schema, document }) =>
      typesOf(schema).map((type) => this.#named(type, schema, document)),
    );
    return {
      text: texts[0] ?? "",
      type: [...new Set(types)].filter((type) => type !== "null").join(" or "),
      default: withDefault === undefined ? null : JSON.stringify(withDefault.schema.default),
    };
  }

  isObject(schemas: readonly Located[]): boolean {
    return schemas.some(({ schema }) => typesOf(schema).includes("object"));
  }

  isArray(schemas: readonly Located[]): boolean {
    return schemas.some(({ schema }) => typesOf(schema).includes("array"));
  }

  #named(type: string, schema: Schema, document: Schema): string {
    if (type !== "array" || !("items" in schema)) return type;
    const items = this.#expanded([{ schema: recordOf(schema.items), document }]);
    const types = [...new Set(items.flatMap((each) => typesOf(each.schema)))];
    return types.length === 0 ? type : `array of ${types.join(" or ")}`;
  }

  /** Return the schemas with those that they refer to, the nearest first. */
  #expanded(schemas: readonly Located[], depth = 0): Located[] {
    if (depth > MAX_DEPTH) return [];
    return schemas.flatMap((each) => [each, ...this.#expanded(this.#referred(each), depth + 1)]);
  }

  #referred({ schema, document }: Located): Located[] {
    const combined = COMBINED.flatMap((word) => arrayOf(schema[word]));
    const found = combined.map((part) => ({ schema: recordOf(part), document }));
    if (typeof schema.$ref === "string") found.push({ schema: definition(document, schema.$ref), document });
    const type = schema[KUBERNETES_TYPE];
    if (typeof type === "string") {
      const reference = `#/$defs/${type.split(".").at(-1)}`;
      found.push({ schema: definition(this.kubernetes, reference), document: this.kubernetes });
    }
    return found;
  }
}

function stepInto({ schema, document }: Located, step: string | number): Located[] {
  if (typeof step === "number") return "items" in schema ? [{ schema: recordOf(schema.items), document }] : [];
  const property = recordOf(schema.properties)[step] ?? schema.additionalProperties;
  return typeof property === "object" && property !== null ? [{ schema: recordOf(property), document }] : [];
}

function definition(document: Schema, reference: string): Schema {
  let found: unknown = document;
  for (const step of reference.replace(/^#\/?/, "").split("/")) found = recordOf(found)[step];
  return recordOf(found);
}

function typesOf(schema: Schema): string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((each) => typeof each === "string");
  return "properties" in schema ? ["object"] : [];
}

function recordOf(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

function arrayOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
