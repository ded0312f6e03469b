import type { LineRing } from "./ring";

export interface Range {
  start: number;
  end: number;
}

export interface Matcher {
  pattern: RegExp;
  /** The number of characters of a line that are searched. */
  length: number;
}

/** What is searched for. `error` is set if the text is no valid regular expression. */
export type Search = { matcher: Matcher; error: null } | { matcher: null; error: string | null };

/** The part of a line that a regular expression searches: one that backtracks could stop the page for long. */
const SEARCHED_BY_REGEX = 64 * 1024;
/** Lines that are searched in one go; a search of more continues in the next frame. */
const SLICE = 10_000;

/** Return the search for a text, which ignores case. An empty text searches for nothing. */
export function searchFor(text: string, isRegex: boolean): Search {
  if (text === "") return { matcher: null, error: null };
  try {
    const pattern = new RegExp(isRegex ? text : escaped(text), "gi");
    return { matcher: { pattern, length: isRegex ? SEARCHED_BY_REGEX : Number.POSITIVE_INFINITY }, error: null };
  } catch (error) {
    return { matcher: null, error: error instanceof Error ? error.message : String(error) };
  }
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** Return where the matcher finds something in the first `length` characters; matches without characters do not count. */
export function rangesIn(text: string, matcher: Matcher, length: number = matcher.length): Range[] {
  const ranges: Range[] = [];
  // The search of a line leaves the pattern after its match, and matchAll begins there.
  matcher.pattern.lastIndex = 0;
  for (const match of text.slice(0, Math.min(length, matcher.length)).matchAll(matcher.pattern)) {
    if (match[0] !== "") ranges.push({ start: match.index, end: match.index + match[0].length });
  }
  return ranges;
}

function isIn(text: string, matcher: Matcher): boolean {
  const { pattern, length } = matcher;
  pattern.lastIndex = 0;
  const match = pattern.exec(text.slice(0, length));
  return match !== null && (match[0] !== "" || rangesIn(text, matcher).length > 0);
}

/** The lines of a ring that match; none without a matcher. Each call of `scan` searches only lines that are new. */
export class Matches {
  #numbers: readonly number[] = NONE;
  #scanned = 0;

  constructor(private readonly matcher: Matcher | null) {}

  /** The numbers of the matching lines, ascending: a new array if they have changed. */
  get numbers(): readonly number[] {
    return this.#numbers;
  }

  /** Search the next lines, and return whether more remain. */
  scan(ring: LineRing, most: number = SLICE): boolean {
    if (this.matcher === null) return false;
    const start = Math.max(this.#scanned, ring.first);
    const end = Math.min(ring.end, start + most);
    const found: number[] = [];
    for (let number = start; number < end; number += 1) {
      const line = ring.get(number);
      if (line !== undefined && isIn(line.text, this.matcher)) found.push(number);
    }
    this.#scanned = end;
    const dropped = lowerBound(this.#numbers, ring.first);
    if (dropped > 0 || found.length > 0) this.#numbers = this.#numbers.slice(dropped).concat(found);
    return end < ring.end;
  }
}

const NONE: readonly number[] = [];

/**
 * Return the first matching line after a line, or the last one before it if `step` is -1. At the end, the search
 * continues at the other end. Null if no line matches.
 */
export function nextMatch(numbers: readonly number[], from: number, step: 1 | -1): number | null {
  if (numbers.length === 0) return null;
  const at = lowerBound(numbers, from);
  const index = step === -1 ? at - 1 : numbers[at] === from ? at + 1 : at;
  return numbers.at(index % numbers.length) ?? null;
}

/** Return the position of a line among the matching ones, from 1; null if it does not match. */
export function positionOf(numbers: readonly number[], current: number | null): number | null {
  if (current === null) return null;
  const at = lowerBound(numbers, current);
  return numbers[at] === current ? at + 1 : null;
}

/** Return the index of the first number that is not less. */
function lowerBound(numbers: readonly number[], value: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
