import { Store } from "../../../live/store";
import type { OpenLog, PlacedLine, Wanted } from "./requests";
import { linesUntilEnd } from "./requests";

/** Bytes that are requested at once. */
export const RANGE = 256 * 1024;
/** Lines that the page keeps: enough for the view and what the reader scrolls to next. */
export const MOST_LINES = 10_000;

export interface WindowState {
  lines: readonly PlacedLine[];
  /** The lines are those that begin from this byte on, and before `end`. */
  start: number;
  end: number;
  /** The bytes of the whole log that are kept. */
  size: number;
  /** How many lines came before those of the state before; negative if the first ones were dropped. */
  shift: number;
  /** The byte whose line is to be shown; it changes with each jump. */
  target: { offset: number } | null;
  isLoading: boolean;
  error: Error | null;
}

const EMPTY: WindowState = {
  lines: [],
  start: 0,
  end: 0,
  size: 0,
  shift: 0,
  target: null,
  isLoading: false,
  error: null,
};

type Open = (wanted: Wanted, signal: AbortSignal) => Promise<OpenLog>;

/**
 * The lines of a whole log around the place that the reader views. Ranges of bytes that follow each other have each line
 * once, so the window grows at both ends without a seam, and drops the lines at the other one.
 */
export class LogWindow {
  readonly state = new Store<WindowState>(EMPTY);
  #running: AbortController | null = null;

  constructor(private readonly open: Open) {}

  stop(): void {
    this.#running?.abort();
    this.#running = null;
  }

  /** Show the line at a byte. */
  jump(offset: number): void {
    const { lines, start, end } = this.state.get();
    if (lines.length > 0 && offset >= start && offset < end) {
      this.#set({ target: { offset }, shift: 0 });
      return;
    }
    const begin = Math.max(0, offset - RANGE / 2);
    this.#run({ offset: begin, limit: RANGE }, (found, size) => ({
      lines: found,
      start: begin,
      end: endOf(begin + RANGE, size, found),
      shift: 0,
      target: { offset },
    }));
  }

  /** Show the first line of a time or later. */
  jumpToTime(time: string, onFound: (offset: number) => void): void {
    this.stop();
    const running = this.#begin();
    void this.#guard(running, async () => {
      const log = await this.open({ sinceTime: time }, running.signal);
      let offset = log.size;
      for await (const line of log.lines) {
        if (line.isMissing) continue;
        offset = line.offset;
        break;
      }
      if (running.signal.aborted) return;
      this.#running = null;
      onFound(offset);
    });
  }

  /** Return the first byte of the line after the one at a byte, or before it; null if that is not loaded. */
  near(offset: number, by: 1 | -1): number | null {
    const { lines } = this.state.get();
    const index = indexAt(lines, offset);
    // A line that says what is missing has the place of the line after it.
    for (let next = index + by; next >= 0 && next < lines.length; next += by) {
      const line = lines[next];
      if (line !== undefined && !line.isMissing) return line.offset;
    }
    return null;
  }

  /** Load the lines before the first one, unless something is being loaded. */
  extendUp(): void {
    const { lines, start, end } = this.state.get();
    if (start === 0 || this.#running !== null) return;
    const begin = Math.max(0, start - RANGE);
    this.#run({ offset: begin, limit: start - begin }, (found) => {
      const all = [...found, ...lines];
      const kept = all.slice(0, MOST_LINES);
      return { lines: kept, start: begin, end: kept.length < all.length ? after(kept, end) : end, shift: found.length };
    });
  }

  /** Load the lines after the last one, unless something is being loaded. Return whether there may be more. */
  extendDown(): void {
    const { lines, start, end, size } = this.state.get();
    if (end >= size || this.#running !== null) return;
    this.#run({ offset: end, limit: RANGE }, (found, newSize) => {
      const all = [...lines, ...found];
      const kept = all.slice(-MOST_LINES);
      const dropped = all.length - kept.length;
      const first = dropped > 0 ? (kept[0]?.offset ?? start) : start;
      return { lines: kept, start: first, end: endOf(end + RANGE, newSize, kept), shift: -dropped };
    });
  }

  #run(wanted: Wanted, change: (found: PlacedLine[], size: number) => Partial<WindowState>): void {
    this.stop();
    const running = this.#begin();
    void this.#guard(running, async () => {
      const log = await this.open(wanted, running.signal);
      const found = await linesUntilEnd(log);
      if (running.signal.aborted) return;
      this.#running = null;
      this.#set({ ...change(found, log.size), size: log.size, isLoading: false });
    });
  }

  #begin(): AbortController {
    const running = new AbortController();
    this.#running = running;
    this.#set({ isLoading: true, error: null, shift: 0 });
    return running;
  }

  async #guard(running: AbortController, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (running.signal.aborted) return;
      this.#running = null;
      this.#set({ error: error as Error, isLoading: false, shift: 0 });
    }
  }

  #set(change: Partial<WindowState>): void {
    this.state.update((state) => ({ ...state, ...change }));
  }
}

/** Return the byte after which the next range begins: after the end of what is kept, only the last line is known. */
function endOf(end: number, size: number, lines: readonly PlacedLine[]): number {
  return end <= size ? end : Math.max(size, after(lines, size));
}

function after(lines: readonly PlacedLine[], otherwise: number): number {
  const last = lines.at(-1);
  return last === undefined ? otherwise : last.offset + 1;
}

/** Return the index of the line at a byte: the last one that begins there or before; 0 without one. */
export function indexAt(lines: readonly PlacedLine[], offset: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle]?.offset ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
