import { ApiError } from "../api/problems";
import type { Changes } from "./changes";
import { type Change, noRows, type Row, type Rows, withChanges, withFound, withPage } from "./rows";
import { Store } from "./store";

/** A page of a list. */
export interface Page<R> {
  items: R[];
  nextPageToken: string | null;
}

/** Reads a list with its filters. */
export interface ListReader<R> {
  page(token: string | null, signal: AbortSignal): Promise<Page<R>>;
  /** Return those of the given objects that match the filters; at most 100 uids. */
  byUid(uids: string[], signal: AbortSignal): Promise<R[]>;
}

export interface ListState<R extends Row> {
  rows: Rows<R>;
  isLoading: boolean;
  error: Error | null;
}

/** Milliseconds for which changes are collected, so that a burst renders once and asks once. */
const COLLECT = 400;
/** Milliseconds before a question that got no answer is repeated. */
const RETRY = 3000;
const UIDS_PER_REQUEST = 100;

/** A list that follows the changes of its objects from `start` until `stop`. */
export class LiveList<R extends Row, C extends Change> {
  readonly state = new Store<ListState<R>>({ rows: noRows(), isLoading: true, error: null });
  readonly #pending = new Map<string, Change>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lifetime = new AbortController();
  #unsubscribe: () => void = () => undefined;
  /** Identifies the latest load from the beginning. The answers of earlier ones are dropped. */
  #load = 0;
  /** The number of requests that are on their way. */
  #asking = 0;

  constructor(
    private readonly changes: Changes<C>,
    private readonly reader: ListReader<R>,
    private readonly phases: readonly string[],
  ) {}

  start(): void {
    this.#lifetime = new AbortController();
    void this.reload();
    this.#unsubscribe = this.changes.subscribe({
      onChange: (status) => this.#collect(status),
      onReset: () => void this.reload(),
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#lifetime.abort();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Read the first page again. The rows stay until it has arrived. */
  reload(): Promise<void> {
    this.#pending.clear();
    this.#load += 1;
    return this.#read(null, noRows());
  }

  /** Read the next page, unless a page is being read or none is left. */
  async more(): Promise<void> {
    const { rows, isLoading } = this.state.get();
    if (!isLoading && rows.next !== null) await this.#read(rows.next, null);
  }

  /** Append a page to `base`, or to the present rows if it is null. */
  async #read(token: string | null, base: Rows<R> | null): Promise<void> {
    const load = this.#load;
    const { signal } = this.#lifetime;
    this.state.update((state) => ({ ...state, isLoading: true }));
    this.#asking += 1;
    try {
      const page = await this.reader.page(token, signal);
      if (load !== this.#load || signal.aborted) return;
      this.state.update((state) => ({
        rows: withPage(base ?? state.rows, page.items, page.nextPageToken),
        isLoading: false,
        error: null,
      }));
    } catch (error) {
      if (load !== this.#load || signal.aborted) return;
      this.state.update((state) => ({ ...state, isLoading: false, error: error as Error }));
    } finally {
      this.#asking -= 1;
    }
  }

  #collect(change: Change): void {
    this.#pending.set(change.uid, change);
    this.#schedule(COLLECT);
  }

  #schedule(milliseconds: number): void {
    this.#timer ??= setTimeout(() => void this.#flush(), milliseconds);
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    // An answer on its way may show an earlier state than the changes, and would replace what they say.
    if (this.#asking > 0) {
      this.#schedule(COLLECT);
      return;
    }
    const changes = new Map(this.#pending);
    this.#pending.clear();
    const { rows, unknown } = withChanges(this.state.get().rows, changes, this.phases);
    this.state.update((state) => ({ ...state, rows }));
    for (let first = 0; first < unknown.length; first += UIDS_PER_REQUEST) {
      await this.#find(unknown.slice(first, first + UIDS_PER_REQUEST), changes);
    }
  }

  /** Ask for objects that are not loaded. If the gateway cannot answer now, ask again later. */
  async #find(uids: string[], changes: ReadonlyMap<string, Change>): Promise<void> {
    const load = this.#load;
    const { signal } = this.#lifetime;
    this.#asking += 1;
    try {
      const found = await this.reader.byUid(uids, signal);
      if (load !== this.#load || signal.aborted) return;
      this.state.update((state) => ({ ...state, rows: withFound(state.rows, found), error: null }));
    } catch (error) {
      if (load !== this.#load || signal.aborted) return;
      this.state.update((state) => ({ ...state, error: error as Error }));
      if (error instanceof ApiError && error.isTemporary) this.#askAgain(uids, changes);
    } finally {
      this.#asking -= 1;
    }
  }

  #askAgain(uids: string[], changes: ReadonlyMap<string, Change>): void {
    for (const uid of uids) {
      const change = changes.get(uid);
      if (change !== undefined && !this.#pending.has(uid)) this.#pending.set(uid, change);
    }
    this.#schedule(RETRY);
  }
}
