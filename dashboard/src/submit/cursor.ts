/** Finds what the cursor stands on in a text that may be incomplete. Pure. */
import { type Document, isMap, isScalar, isSeq, type Node, parseAllDocuments } from "yaml";

export interface Cursor {
  /** The part of the text that a suggestion replaces. */
  from: number;
  to: number;
  /** A key of the mapping at `path`, or the value at `path`. */
  position: "key" | "value";
  /** From the root of the manifest: in a List, from its item. */
  path: readonly (string | number)[];
  /** The other keys of the mapping at `path`. */
  siblings: readonly string[];
  /** The apiVersion and the kind of the manifest; empty if they are not written yet. */
  apiVersion: string;
  kind: string;
  /** Whether the mapping is written in braces. */
  isFlow: boolean;
  /** The quotation mark around the word; empty if there is none. */
  quote: string;
  /** Whether a colon follows, so that the key is complete. */
  hasColon: boolean;
  /** The column of the word. */
  column: number;
}

/** Stands for the word at the cursor in the text that is parsed. */
const MARK = "jobgateCursorMark";
/** Longer texts are not parsed at each key. */
const MAX_LENGTH = 500_000;

interface Word {
  from: number;
  to: number;
  /** After the closing quotation mark, if there is one. */
  end: number;
  quote: string;
  position: Cursor["position"];
  hasColon: boolean;
  column: number;
}

/** Return what is at the cursor; null where neither a key nor a value can be completed, such as in a comment. */
export function cursorAt(text: string, offset: number): Cursor | null {
  if (text.length > MAX_LENGTH) return null;
  const word = wordAt(text, offset);
  if (word === null) return null;
  const { position, hasColon, quote } = word;
  // The text lacks what the user has not written yet, so it may not even be YAML. With the mark in place of the word it
  // is complete enough for the parser, which knows more about indentation and braces than any pattern.
  const mark = `${quote}${MARK}${quote}${position === "key" && !hasColon ? ": " : ""}`;
  const marked = text.slice(0, word.from - quote.length) + mark + text.slice(word.end);
  const parsed = parseAllDocuments(marked, { prettyErrors: false, uniqueKeys: false, logLevel: "silent" });
  for (const root of "empty" in parsed ? [] : parsed) {
    const found = find(root.contents, []);
    if (found !== null) return { ...word, ...found, ...manifestAt(root, found.path) };
  }
  return null;
}

function wordAt(text: string, offset: number): Word | null {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  const before = text.slice(lineStart, offset);
  const [typed = ""] = /(?:[A-Za-z][\w./-]*)?$/.exec(before) ?? [];
  const [rest = ""] = /^[\w./-]*/.exec(text.slice(offset)) ?? [];
  const [quote = ""] = /["']?$/.exec(before.slice(0, before.length - typed.length)) ?? [];
  const lead = before.slice(0, before.length - typed.length - quote.length);
  const position = positionAfter(lead, quote !== "");
  if (position === null) return null;
  const to = offset + rest.length;
  const end = quote !== "" && text[to] === quote ? to + 1 : to;
  const hasColon = /^[^\S\n]*:/.test(text.slice(end));
  return { from: offset - typed.length, to, end, quote, position, hasColon, column: lead.length };
}

function positionAfter(lead: string, isQuoted: boolean): Cursor["position"] | null {
  if (/^\s*(?:-\s+)*$/.test(lead) || /[{,[]\s*$/.test(lead)) return "key";
  return (isQuoted ? /:\s*$/ : /:\s+$/).test(lead) ? "value" : null;
}

type Found = Pick<Cursor, "path" | "siblings" | "isFlow" | "position">;

function find(node: Node | null | undefined, path: readonly (string | number)[]): Found | null {
  if (isMap(node)) {
    const keys = node.items.map((pair) => (isScalar(pair.key) ? String(pair.key.value) : ""));
    if (keys.includes(MARK)) {
      const siblings = keys.filter((key) => key !== MARK);
      return { path, siblings, isFlow: node.flow === true, position: "key" };
    }
    return first(node.items, (pair, index) => find(pair.value as Node | null, [...path, keys[index] ?? ""]));
  }
  if (isSeq(node)) return first(node.items, (item, index) => find(item as Node | null, [...path, index]));
  return isScalar(node) && node.value === MARK ? { path, siblings: [], isFlow: false, position: "value" } : null;
}

function first<T, R>(items: readonly T[], search: (item: T, index: number) => R | null): R | null {
  for (const [index, item] of items.entries()) {
    const found = search(item, index);
    if (found !== null) return found;
  }
  return null;
}

function manifestAt(
  root: Document.Parsed,
  path: readonly (string | number)[],
): Pick<Cursor, "apiVersion" | "kind" | "path"> {
  const isItem = root.get("kind") === "List" && path[0] === "items" && path.length > 1;
  const base = isItem ? path.slice(0, 2) : [];
  const text = (name: string) => {
    const value = root.getIn([...base, name]);
    return typeof value === "string" && value !== MARK ? value : "";
  };
  return { apiVersion: text("apiVersion"), kind: text("kind"), path: path.slice(base.length) };
}
