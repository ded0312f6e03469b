/** Finds the place of a JSON pointer (RFC 6901) in a parsed document. Pure. */
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Pair } from "yaml";
import { type Place, placeOf } from "./documents";

/** Merges that are followed, so that an alias that contains itself ends. */
const MAX_MERGES = 10;

interface Found {
  /** The offset where the value begins, or its key if it has one. */
  from: number;
  to: number;
  node: Node | null;
}

/**
 * Return the place of the value that the pointer names: its key and, on the same line, its value.
 *
 * If the document does not have it, because it is missing, the place is that of the nearest value around it.
 */
export function placeAt(text: string, root: Document.Parsed, pointer: string): Place {
  const contents: Node | null = root.contents;
  const [start, end] = contents?.range ?? root.range;
  let found: Found = { from: start, to: end, node: contents };
  for (const step of stepsOf(pointer)) {
    const next = child(root, found.node, step, MAX_MERGES);
    if (next === null) break;
    found = next;
  }
  return placeOf(text, found.from, found.to);
}

export function stepsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function child(root: Document, parent: Node | null, step: string, merges: number): Found | null {
  const node = resolved(root, parent);
  if (isMap(node)) {
    const own = node.items.find((pair) => keyOf(pair) === step);
    return own === undefined ? merged(root, node.items, step, merges) : foundPair(own);
  }
  if (isSeq(node)) {
    const item = node.items[Number(step)] as Node | undefined;
    return item?.range ? { from: item.range[0], to: item.range[1], node: item } : null;
  }
  return null;
}

/** Find a key that a merge key (`<<`) brings in. */
function merged(root: Document, pairs: readonly Pair[], step: string, merges: number): Found | null {
  if (merges === 0) return null;
  for (const pair of pairs.filter((each) => keyOf(each) === "<<")) {
    const value = resolved(root, pair.value as Node | null);
    for (const source of isSeq(value) ? value.items : [value]) {
      const found = child(root, source as Node | null, step, merges - 1);
      if (found !== null) return found;
    }
  }
  return null;
}

function foundPair(pair: Pair): Found | null {
  const key = pair.key as Node;
  const value = pair.value as Node | null;
  if (!key.range) return null;
  const end = isScalar(value) && value.range ? value.range[1] : key.range[1];
  return { from: key.range[0], to: Math.max(end, key.range[1]), node: value };
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : "";
}

function resolved(root: Document, node: Node | null): Node | null {
  return isAlias(node) ? (node.resolve(root) ?? null) : node;
}
