/**
 * The loaded part of a list: its newest objects, sorted as the gateway sorts them. Without I/O.
 *
 * A change updates a row in place. An object that is not loaded may have been created, or may match the filters only
 * now: `apply` returns its uid, and the caller asks the gateway, which alone knows all filters.
 */

/** What the rows of every resource have in common. */
export interface Row {
  uid: string;
  createdAt: string;
  deletedAt: string | null;
  status: { phase: string };
}

/** What a change says about an object. */
export interface Change {
  uid: string;
  generation: number;
  deletedAt: string | null;
  status: { phase: string };
}

/** Where the next page begins: after the page that had the token, among the objects created before a time. */
export interface Cursor {
  token: string | null;
  /** Null if the list was read from its beginning. */
  before: string | null;
}

export interface Rows<R extends Row> {
  /** The newest first. */
  items: readonly R[];
  /** Null if the list is complete. */
  next: Cursor | null;
  isLoaded: boolean;
}

/** What the gateway sorts a list by. */
type Position = Pick<Row, "createdAt" | "uid">;

export function noRows<R extends Row>(): Rows<R> {
  return { items: [], next: null, isLoaded: false };
}

/** The most uids of objects beyond the loaded part that are remembered. */
const MOST_BEYOND = 10_000;

/**
 * The rows of a list. The work of a change grows with the logarithm of their number, not with the number: a row is
 * found by its uid and its place by halving. Only pointers are copied, once for each call, because `rows` is a new value
 * after it.
 */
export class SortedRows<R extends Row> {
  #items: readonly R[] = [];
  readonly #byUid = new Map<string, R>();
  /** Objects that come with a later page: the gateway need not be asked about them again. */
  readonly #beyond = new Set<string>();
  #next: Cursor | null = null;
  /** The last position down to which all objects are loaded. Null if it is not known, or the list is complete. */
  #end: Position | null = null;
  #isLoaded = false;

  get rows(): Rows<R> {
    return { items: this.#items, next: this.#next, isLoaded: this.#isLoaded };
  }

  get length(): number {
    return this.#items.length;
  }

  /** Add the page that follows the loaded ones. */
  append(page: readonly R[], next: Cursor | null): void {
    this.#add(page);
    this.#beyond.clear();
    this.#next = next;
    // An empty page has passed objects that the filters leave out, and does not say how far.
    this.#end = next === null ? null : (page.at(-1) ?? null);
    this.#isLoaded = true;
  }

  /**
   * Apply the latest change of each object, and return the uids of objects about which the gateway must be asked.
   *
   * `phases` are those of the filter; empty if there is none. A row that has left them, or that was deleted, is removed.
   */
  apply(changes: ReadonlyMap<string, Change>, phases: readonly string[]): string[] {
    const unknown: string[] = [];
    const removed = new Set<R>();
    let items: R[] | null = null;
    for (const change of changes.values()) {
      const row = this.#byUid.get(change.uid);
      if (row === undefined) {
        if (isListed(change, phases) && !this.#beyond.has(change.uid)) unknown.push(change.uid);
      } else if (isListed(change, phases)) {
        const { generation, deletedAt, status } = change;
        const changed = { ...row, generation, deletedAt, status };
        this.#byUid.set(change.uid, changed);
        items ??= [...this.#items];
        items[placeOf(items, row)] = changed;
      } else {
        this.#byUid.delete(change.uid);
        removed.add(row);
      }
    }
    if (items !== null) this.#items = items;
    if (removed.size > 0) this.#items = this.#items.filter((row) => !removed.has(row));
    return unknown;
  }

  /** Insert objects that belong to the loaded part, or may do so; others come with their page. */
  insert(found: readonly R[]): void {
    const end = this.#end;
    const isBeyond = (row: R) => end !== null && isBefore(end, row);
    for (const row of found) if (isBeyond(row) && !this.#byUid.has(row.uid)) this.#remember(row.uid);
    this.#add(found.filter((row) => !isBeyond(row)));
  }

  /** Keep about the newest `most` rows. The others are read again as the next page. */
  trim(most: number): void {
    const last = this.#items[most - 1];
    if (last === undefined || this.#items.length === most) return;
    // A list can begin between two times, not between two objects that were submitted together.
    const end = firstIndex(this.#items, (row) => compareTimes(row.createdAt, last.createdAt) < 0);
    if (end === this.#items.length || !this.#isCompleteTo(last)) return;
    for (const row of this.#items.slice(end)) this.#byUid.delete(row.uid);
    this.#items = this.#items.slice(0, end);
    this.#next = { token: null, before: last.createdAt };
    // The next page begins before this time, and every uid is sorted before the empty one.
    this.#end = { createdAt: last.createdAt, uid: "" };
  }

  /** Sort rows in among the others, with one row for each object. */
  #add(rows: readonly R[]): void {
    const added = new Map<string, R>();
    for (const row of rows) if (!this.#byUid.has(row.uid)) added.set(row.uid, row);
    if (added.size === 0) return;
    for (const row of added.values()) this.#byUid.set(row.uid, row);
    this.#items = merged(this.#items, [...added.values()].sort(compare));
  }

  /** Whether all objects down to a position are loaded. */
  #isCompleteTo(position: Position): boolean {
    return this.#next === null || (this.#end !== null && !isBefore(this.#end, position));
  }

  #remember(uid: string): void {
    if (this.#beyond.size === MOST_BEYOND) this.#beyond.clear();
    this.#beyond.add(uid);
  }
}

function isListed(change: Change, phases: readonly string[]): boolean {
  return change.deletedAt === null && (phases.length === 0 || phases.includes(change.status.phase));
}

/** Return the sorted rows together with others, which are sorted too. */
function merged<R extends Row>(items: readonly R[], added: readonly R[]): R[] {
  const result: R[] = [];
  let from = 0;
  for (const row of added) {
    const place = placeOf(items, row);
    for (; from < place; from += 1) result.push(items[from] as R);
    result.push(row);
  }
  for (; from < items.length; from += 1) result.push(items[from] as R);
  return result;
}

/** Return the index of a row, or the one at which it belongs. */
function placeOf(items: readonly Position[], row: Position): number {
  return firstIndex(items, (each) => !isBefore(each, row));
}

/** Return the index of the first item for which the test is true. It must be true for all later ones. */
function firstIndex<T>(items: readonly T[], test: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(items[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether the gateway lists `a` before `b`: newest first, and by uid among objects of the same time. */
function isBefore(a: Position, b: Position): boolean {
  return compare(a, b) < 0;
}

function compare(a: Position, b: Position): number {
  const times = compareTimes(b.createdAt, a.createdAt);
  if (times !== 0) return times;
  return a.uid === b.uid ? 0 : a.uid > b.uid ? -1 : 1;
}

/** Compare two times of the gateway: in UTC, and without a fraction that is zero. Negative if `a` is earlier. */
export function compareTimes(a: string, b: string): number {
  const [left, right] = a.length === b.length ? [a, b] : [instantKey(a), instantKey(b)];
  return left === right ? 0 : left < right ? -1 : 1;
}

function instantKey(time: string): string {
  const [seconds = "", fraction = ""] = time.replace(/Z$/, "").split(".");
  return `${seconds}.${fraction.padEnd(6, "0")}`;
}
