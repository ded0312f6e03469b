import { PLAIN, parseAnsi, type Span, type Style } from "./ansi";
import { lastState } from "./splitter";

/** A line as the gateway sends it, before its control sequences are interpreted. */
export interface RawLine {
  /** The replica and attempt that wrote it, as `worker[3]` or `worker[3]#2`; empty if the log is of one. */
  source: string;
  /** When it was written; null if that is not stored. */
  at: string | null;
  raw: string;
}

/** A line as the page shows it. */
export interface LogLine {
  source: string;
  at: string | null;
  text: string;
  spans: readonly Span[];
}

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) /;

/** Separate the time with which the cluster begins each line if `timestamps` are requested. */
export function stamped(raw: string): { at: string | null; raw: string } {
  const match = STAMP.exec(raw);
  return match === null ? { at: null, raw } : { at: match[1] ?? null, raw: raw.slice(match[0].length) };
}

/** Return a text that sorts like the time, to the nanosecond. */
export function stampKey(at: string): string {
  const [, seconds = "", fraction = "", offset = "Z"] = /^([^.Z+]*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(at) ?? [];
  const epoch = Date.parse(seconds + offset) / 1000;
  return `${String(epoch).padStart(12, "0")}.${fraction.padEnd(9, "0")}`;
}

/** Return the time of a key of `stampKey`, in microseconds and not after it. */
export function timeOf(key: string): string {
  const [epoch = "", fraction = ""] = key.split(".");
  return new Date(Number(epoch) * 1000).toISOString().replace(/\.000Z$/, `.${fraction.slice(0, 6)}Z`);
}

/** Interprets the lines of a log. A style that a line does not reset continues on the next line of its source. */
export class LineReader {
  readonly #styles = new Map<string, Style>();

  read(line: RawLine): LogLine {
    const parsed = parseAnsi(lastState(line.raw), this.#styles.get(line.source) ?? PLAIN);
    this.#styles.set(line.source, parsed.style);
    return { source: line.source, at: line.at, text: parsed.text, spans: parsed.spans };
  }
}

/** How the line begins that says why the gateway ended a log early. */
export const CUT_OFF = "[jobgate] the log is cut off here: ";

/** Return the reason with which the gateway ended a log early; null if this is another line. */
export function cutOffReason(raw: string): string | null {
  return raw.startsWith(CUT_OFF) ? raw.slice(CUT_OFF.length) : null;
}
