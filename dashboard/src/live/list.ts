import { ApiError } from "../api/problems";
import type { Changes } from "./changes";
import { type Change, type Cursor, noRows, type Row, type Rows, SortedRows } from "./rows";
import { Store } from "./store";

/** A page of a list. */
export interface Page<R> {
  items: R[];
  nextPageToken: string | null;
}

/** The parameters of a list request, except the filters. */
export interface PageParameters {
  pageSize?: number;
  pageToken?: string;
  createdBefore?: string;
  uid?: string[];
}

/** Reads a list with its filters. */
export type ListReader<R> = (parameters: PageParameters, signal: AbortSignal) => Promise<Page<R>>;

export interface ListState<R extends Row> {
  rows: Rows<R>;
  isLoading: boolean;
  /** Whether older objects are not read, because the page keeps no more rows. */
  isFull: boolean;
  error: Error | null;
}

/** Milliseconds for which changes are collected, so that a burst renders once and asks once. */
const COLLECT = 400;
/** Milliseconds before a question that got no answer is repeated. */
const RETRY = 3000;
const UIDS_PER_REQUEST = 100;
/** The first page is small, so that it is shown soon; the others are the largest, so that a reader who scrolls waits rarely. */
const FIRST_PAGE = 200;
const NEXT_PAGE = 500;
/** Rows before the end of the loaded ones at which the next page is requested. */
const NEAR_END = 50;
/** The most rows that the page keeps: each has about 1 kB. */
export const MOST_ROWS = 100_000;
/** The rows that stay loaded below those in view. A page that is open for days would otherwise keep each new row. */
const KEPT_BELOW = 10_000;
/** Rows are dropped this many at a time. */
const SLACK = 1000;
/** The most pages that are read again at once, so that the rows in view stay there. */
const PAGES_AGAIN = 10;

/** A list that follows the changes of its objects from `start` until `stop`. */
export class LiveList<R extends Row, C extends Change> {
  readonly state = new Store<ListState<R>>({ rows: noRows(), isLoading: true, isFull: false, error: null });
  readonly #pending = new Map<string, Change>();
  #rows = new SortedRows<R>();
  /** The index of the last row in view. */
  #last = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lifetime = new AbortController();
  #unsubscribe: () => void = () => undefined;
  /** Identifies the latest load from the beginning. The answers of earlier ones are dropped. */
  #load = 0;
  /** The number of requests that are on their way. */
  #asking = 0;
  /** Why the latest question about objects got no answer. */
  #findError: Error | null = null;

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

  /** Read the first pages again, down to the rows in view. The rows stay until they have arrived. */
  reload(): Promise<void> {
    this.#pending.clear();
    this.#load += 1;
    return this.#read(new SortedRows<R>(), { token: null, before: null });
  }

  /** Note the index of the last row in view, and read the next page if it is near the end of the loaded rows. */
  shown = (last: number): void => {
    this.#last = last;
    const { rows, isLoading, isFull } = this.state.get();
    const isNearEnd = last >= rows.items.length - NEAR_END;
    if (isNearEnd && !isLoading && !isFull && rows.next !== null) void this.#read(this.#rows, rows.next);
  };

  /** Append a page to `rows`, and show them. */
  async #read(rows: SortedRows<R>, from: Cursor): Promise<void> {
    const load = this.#load;
    const { signal } = this.#lifetime;
    this.state.update((state) => ({ ...state, isLoading: true }));
    this.#asking += 1;
    try {
      let next: Cursor | null = from;
      let isTrimmed = false;
      for (let pages = 0; next !== null && pages < (rows === this.#rows ? 1 : PAGES_AGAIN); pages += 1) {
        const page = await this.reader(parametersOf(next), signal);
        if (load !== this.#load || signal.aborted) return;
        // The rows may have been trimmed meanwhile: the page does not follow them any more.
        isTrimmed = rows === this.#rows && rows.rows.next !== from;
        if (isTrimmed) break;
        next = page.nextPageToken === null ? null : { token: page.nextPageToken, before: next.before };
        rows.append(page.items, next);
        if (rows.length >= this.#last) break;
      }
      this.#rows = rows;
      this.#show({ isLoading: false, error: null });
      if (isTrimmed) this.shown(this.#last);
    } catch (error) {
      if (load !== this.#load || signal.aborted) return;
      this.state.update((state) => ({ ...state, isLoading: false, error: error as Error }));
    } finally {
      this.#asking -= 1;
    }
  }

  #show(change: Partial<ListState<R>>): void {
    const { rows } = this.#rows;
    this.state.update((state) => ({ ...state, ...change, rows, isFull: rows.items.length >= MOST_ROWS }));
  }

  #trim(): void {
    const most = Math.min(MOST_ROWS, this.#last + KEPT_BELOW);
    if (this.#rows.length > most + SLACK) this.#rows.trim(most);
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
    // The answer to a question about objects is no list: the first page must be read.
    if (!this.#rows.rows.isLoaded) {
      await this.reload();
      return;
    }
    const changes = new Map(this.#pending);
    this.#pending.clear();
    const unknown = this.#rows.apply(changes, this.phases);
    this.#show({});
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
      const found = await this.reader({ uid: uids }, signal);
      if (load !== this.#load || signal.aborted) return;
      this.#rows.insert(found.items);
      this.#trim();
      this.#show(this.#asked(null));
    } catch (error) {
      if (load !== this.#load || signal.aborted) return;
      this.#show(this.#asked(error as Error));
      if (error instanceof ApiError && error.isTemporary) this.#askAgain(uids, changes);
    } finally {
      this.#asking -= 1;
    }
  }

  /** Return the error after a question about objects: that of a page stays until the page is read. */
  #asked(error: Error | null): Pick<ListState<R>, "error"> {
    const { error: known } = this.state.get();
    const isOfPage = known !== null && known !== this.#findError;
    this.#findError = error;
    return { error: isOfPage ? known : error };
  }

  #askAgain(uids: string[], changes: ReadonlyMap<string, Change>): void {
    for (const uid of uids) {
      const change = changes.get(uid);
      if (change !== undefined && !this.#pending.has(uid)) this.#pending.set(uid, change);
    }
    this.#schedule(RETRY);
  }
}

function parametersOf({ token, before }: Cursor): PageParameters {
  return {
    pageSize: token === null && before === null ? FIRST_PAGE : NEXT_PAGE,
    ...(token !== null && { pageToken: token }),
    ...(before !== null && { createdBefore: before }),
  };
}
