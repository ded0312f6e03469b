/** The requests that a text becomes: one for each resource and namespace, because each has its own route. Pure. */
import type { Kind } from "../api/types";
import type { ManifestDocument, ManifestText, Place } from "./documents";
import { placeAt } from "./pointers";

export interface ManifestRequest {
  namespace: string;
  resource: string;
  body: string;
  contentType: "application/json" | "application/yaml";
  /** The documents of the body, in their order. */
  documents: readonly ManifestDocument[];
  /** The whole text, in which the documents have their places. */
  text: string;
}

/** The resource of a kind that the gateway does not know. Its route answers which kinds exist. */
const DEFAULT_RESOURCE = "jobs";
export const DEFAULT_NAMESPACE = "default";

/** Pointers to parameters of the request, which are no fields of a manifest. */
const PARAMETER = /^\/(path|query|header)\//;

/** Group the documents into requests. `namespace` is that of manifests that name none. */
export function requestsOf(parsed: ManifestText, kinds: readonly Kind[], namespace: string): ManifestRequest[] {
  const groups = new Map<string, ManifestDocument[]>();
  for (const [index, document] of parsed.documents.entries()) {
    const target = [document.namespace ?? (namespace.trim() || DEFAULT_NAMESPACE), resourceOf(document, kinds)];
    // A body with several documents cannot contain a List.
    const key = JSON.stringify(document.isList ? [...target, index] : target);
    groups.set(key, [...(groups.get(key) ?? []), document]);
  }
  return [...groups].map(([key, documents]) => {
    const [inNamespace = "", resource = ""] = JSON.parse(key) as string[];
    const body = groups.size === 1 ? parsed.text : documents.map((each) => sourceOf(parsed.text, each)).join("\n---\n");
    return { namespace: inNamespace, resource, body, contentType: contentType(body), documents, text: parsed.text };
  });
}

/** Return the namespaces of the requests; without any, that of manifests that name none. */
export function namespacesOf(requests: readonly ManifestRequest[], namespace: string): string[] {
  if (requests.length === 0) return [namespace.trim() || DEFAULT_NAMESPACE];
  return [...new Set(requests.map((request) => request.namespace))];
}

/** Whether the body has several manifests, or one that is a List. */
export function isSeveral(request: ManifestRequest): boolean {
  return request.documents.length > 1 || request.documents.some((each) => each.isList);
}

/** Return the place of a pointer of the answer to the request; null if it names no place of the text. */
export function placeInRequest(request: ManifestRequest, pointer: string): Place | null {
  if (PARAMETER.test(pointer)) return null;
  const { document, rest } = located(request, pointer);
  return document === undefined ? null : placeAt(request.text, document.root, rest);
}

/** Return the pointer within the document of the text that it leads to. */
export function fieldInDocument(request: ManifestRequest, pointer: string): string {
  const { document, rest } = located(request, pointer);
  return document === undefined ? pointer : rest;
}

/** Return the place of a pointer into the manifest of one item of the answer. */
export function placeInItem(request: ManifestRequest, item: number, pointer: string): Place | null {
  return placeInRequest(request, isSeveral(request) ? `/items/${item}${pointer}` : pointer);
}

function located(request: ManifestRequest, pointer: string): { document: ManifestDocument | undefined; rest: string } {
  if (request.documents.length === 1) return { document: request.documents[0], rest: pointer };
  const match = /^\/items\/(\d+)(.*)$/s.exec(pointer);
  if (match === null) return { document: undefined, rest: "" };
  return { document: request.documents[Number(match[1])], rest: match[2] ?? "" };
}

function resourceOf(document: ManifestDocument, kinds: readonly Kind[]): string {
  return kinds.find((kind) => kind.kind === document.itemKind)?.resource ?? DEFAULT_RESOURCE;
}

function sourceOf(text: string, document: ManifestDocument): string {
  return text.slice(document.from, document.to).trimEnd();
}

function contentType(body: string): ManifestRequest["contentType"] {
  if (!/^\s*[{[]/.test(body)) return "application/yaml";
  try {
    JSON.parse(body);
    return "application/json";
  } catch {
    return "application/yaml"; // a YAML mapping in braces
  }
}
