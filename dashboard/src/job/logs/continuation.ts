import { stampKey, timeOf } from "./lines";

interface Mark {
  key: string;
  /** How many lines have this time. */
  count: number;
}

interface Stamped {
  source: string;
  at: string | null;
}

/**
 * Tells new lines from those that have arrived, when a log is read again after an interruption.
 *
 * The gateway continues a log from a time on, so the first lines repeat. The times of lines identify them to the
 * nanosecond, and lines of the same time are counted.
 */
export class Continuation {
  readonly #latest = new Map<string, Mark>();
  #marks = new Map<string, Mark>();

  /**
   * Return the time from which on lines of these replicas may be missing, in microseconds and not after it: the oldest of
   * the times of their last lines. Null if one of them has none.
   */
  since(replicas: readonly string[]): string | null {
    const last = new Map<string, string>();
    for (const [source, { key }] of this.#latest) {
      const [replica = ""] = source.split("#");
      if (key > (last.get(replica) ?? "")) last.set(replica, key);
    }
    const keys = replicas.map((replica) => last.get(replica) ?? "").sort();
    return keys[0] ? timeOf(keys[0]) : null;
  }

  /** Begin to read again: lines up to the latest one of each source repeat. */
  restart(): void {
    this.#marks = new Map([...this.#latest].map(([source, mark]) => [source, { ...mark }]));
  }

  /** Whether the line has not arrived before. A line without a time counts as new. */
  accepts({ source, at }: Stamped): boolean {
    if (at === null) return true;
    const key = stampKey(at);
    if (!this.#isRepeated(source, key)) {
      this.#note(source, key);
      return true;
    }
    return false;
  }

  #isRepeated(source: string, key: string): boolean {
    const mark = this.#marks.get(source);
    if (mark === undefined) return false;
    if (key < mark.key) return true;
    if (key === mark.key && mark.count > 0) {
      mark.count -= 1;
      return true;
    }
    this.#marks.delete(source);
    return false;
  }

  #note(source: string, key: string): void {
    const latest = this.#latest.get(source);
    if (latest === undefined || key > latest.key) this.#latest.set(source, { key, count: 1 });
    else if (key === latest.key) latest.count += 1;
  }
}

/**
 * Return the lines of a stored log that follow the known ones; null if the logs have no part in common.
 *
 * A stored log has no times. It is the end of the log whose beginning arrived live.
 */
export function linesAfter(known: readonly string[], stored: readonly string[]): readonly string[] | null {
  if (known.length === 0) return stored;
  for (let end = stored.length; end > 0; end -= 1) {
    const length = Math.min(known.length, end);
    const isMatch = Array.from({ length }, (_, back) => back + 1).every(
      (back) => stored[end - back] === known[known.length - back],
    );
    if (isMatch) return stored.slice(end);
  }
  return null;
}
