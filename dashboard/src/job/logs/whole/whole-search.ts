import { Store } from "../../../live/store";
import type { OpenLog, Wanted } from "./requests";

/** Matches that the page keeps. */
export const MOST_MATCHES = 10_000;
/** Milliseconds between two updates of the number of matches. */
const UPDATE_EVERY = 250;

export interface SearchState {
  /** The first bytes of the lines that match, ascending; null if nothing is searched for. */
  offsets: readonly number[] | null;
  isSearching: boolean;
  /** Whether the search ended at the most matches that the page keeps. */
  isCut: boolean;
  error: Error | null;
}

const NOTHING: SearchState = { offsets: null, isSearching: false, isCut: false, error: null };

/** Return the pattern that the gateway searches for: a text, or a regular expression of RE2; both ignore case. */
export function patternOf(text: string, isRegex: boolean): string {
  return `(?i)${isRegex ? text : text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}`;
}

/** Searches a whole log in the gateway. */
export class WholeSearch {
  readonly state = new Store<SearchState>(NOTHING);
  #running: AbortController | null = null;

  constructor(private readonly open: (wanted: Wanted, signal: AbortSignal) => Promise<OpenLog>) {}

  stop(): void {
    this.#running?.abort();
    this.#running = null;
  }

  /** Search for a text from the beginning of the log. An empty text ends the search. */
  start(text: string, isRegex: boolean): void {
    this.stop();
    if (text === "") {
      this.state.set(NOTHING);
      return;
    }
    const running = new AbortController();
    this.#running = running;
    this.state.set({ ...NOTHING, offsets: [], isSearching: true });
    void this.#search(patternOf(text, isRegex), running.signal);
  }

  async #search(search: string, signal: AbortSignal): Promise<void> {
    const offsets: number[] = [];
    let updatedAt = performance.now();
    try {
      const log = await this.open({ search }, signal);
      for await (const line of log.lines) {
        if (signal.aborted) return;
        if (!line.isMissing) offsets.push(line.offset);
        if (offsets.length === MOST_MATCHES) break;
        if (performance.now() - updatedAt > UPDATE_EVERY) {
          updatedAt = performance.now();
          this.state.update((state) => ({ ...state, offsets: [...offsets] }));
        }
      }
      const isCut = offsets.length === MOST_MATCHES;
      if (!signal.aborted) this.state.set({ offsets, isSearching: false, isCut, error: null });
    } catch (error) {
      if (!signal.aborted) this.state.set({ offsets, isSearching: false, isCut: false, error: error as Error });
    }
  }
}
