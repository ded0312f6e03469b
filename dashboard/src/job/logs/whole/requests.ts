import type { Transport } from "../../../api/transport";
import type { LogLine } from "../lines";
import { LineReader } from "../lines";
import { logPath } from "../log-request";
import type { Target } from "../selection";
import { LineSplitter } from "../splitter";

/** The log of one container. */
export type OneTarget = Target & { kind: "one" };

/** A line with its place in the whole log. */
export interface PlacedLine extends LogLine {
  /** The first byte of the line. */
  offset: number;
  /** The number of the line, from 1. */
  number: number;
  /** Whether the gateway wrote it because lines are missing here. */
  isMissing: boolean;
}

/** The part of a whole log that is requested: lines that begin in these bytes, since a time, or that match. */
export interface Wanted {
  offset?: number;
  limit?: number;
  sinceTime?: string;
  search?: string;
}

/** A log whose lines arrive. */
export interface OpenLog {
  /** How many bytes of the log are kept. */
  size: number;
  lines: AsyncGenerator<PlacedLine>;
}

/** Request a part of a whole log. The lines arrive until the signal is aborted. */
export async function openLog(
  transport: Transport,
  uid: string,
  target: OneTarget,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<OpenLog> {
  const path = logPath(uid, target, { follow: false, tailLines: null, sinceTime: null, timestamps: false });
  const more = Object.entries(wanted).filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(more.map(([name, value]) => [name, String(value)]));
  const response = await transport.get(`${path}&${query}`, { Accept: "application/jsonl" }, signal);
  return { size: Number(response.headers.get("Jobgate-Log-Size") ?? 0), lines: linesOf(response) };
}

async function* linesOf(response: Response): AsyncGenerator<PlacedLine> {
  const reader = response.body?.getReader();
  const splitter = new LineSplitter();
  const styles = new LineReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      for (const text of done ? splitter.end() : splitter.feed(value)) {
        const line = placedLine(text, styles);
        if (line !== null) yield line;
      }
      if (done) return;
    }
  } finally {
    // A reader that needs no more lines stops the gateway, too.
    await reader?.cancel().catch(() => undefined);
  }
}

function placedLine(text: string, styles: LineReader): PlacedLine | null {
  const { offset, number, at, line, missing } = parsed(text);
  if (typeof line !== "string" || typeof offset !== "number" || typeof number !== "number") return null;
  const read = styles.read({ source: "", at: typeof at === "string" ? at : null, raw: line });
  return { ...read, offset, number: number + 1, isMissing: typeof missing === "string" };
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Return all lines of an open log. */
export async function linesUntilEnd(log: OpenLog): Promise<PlacedLine[]> {
  const lines: PlacedLine[] = [];
  for await (const line of log.lines) lines.push(line);
  return lines;
}
