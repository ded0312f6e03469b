/**
 * The loaded part of a list: its newest objects, sorted as the gateway sorts them. Pure.
 *
 * A change updates a row in place. An object that is not loaded may have been created, or may match the filters only
 * now: `withChanges` returns its uid, and the caller asks the gateway, which alone knows all filters.
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

export interface Rows<R extends Row> {
  /** The newest first. */
  items: readonly R[];
  /** The token of the next page; null if the list is complete. */
  next: string | null;
  isLoaded: boolean;
}

export function noRows<R extends Row>(): Rows<R> {
  return { items: [], next: null, isLoaded: false };
}

/** Add the page that follows the loaded ones. */
export function withPage<R extends Row>(rows: Rows<R>, items: readonly R[], next: string | null): Rows<R> {
  const known = new Set(rows.items.map((row) => row.uid));
  return { items: [...rows.items, ...items.filter((row) => !known.has(row.uid))], next, isLoaded: true };
}

/**
 * Apply the latest change of each object, and return also the uids of objects that are not loaded.
 *
 * `phases` are those of the filter; empty if there is none. A row that has left them, or that was deleted, is removed.
 */
export function withChanges<R extends Row>(
  rows: Rows<R>,
  changes: ReadonlyMap<string, Change>,
  phases: readonly string[],
): { rows: Rows<R>; unknown: string[] } {
  const seen = new Set<string>();
  const items: R[] = [];
  for (const row of rows.items) {
    const change = changes.get(row.uid);
    if (change === undefined) {
      items.push(row);
      continue;
    }
    seen.add(row.uid);
    if (isListed(change, phases)) {
      const { generation, deletedAt, status } = change;
      items.push({ ...row, generation, deletedAt, status });
    }
  }
  const unknown = [...changes.values()].filter((change) => !seen.has(change.uid) && isListed(change, phases));
  return { rows: { ...rows, items }, unknown: unknown.map((change) => change.uid) };
}

/** Insert objects that belong to the loaded part; others come with their page. */
export function withFound<R extends Row>(rows: Rows<R>, found: readonly R[]): Rows<R> {
  const oldest = rows.items.at(-1);
  const known = new Set(rows.items.map((row) => row.uid));
  const fitting = found.filter(
    (row) => !known.has(row.uid) && (rows.next === null || (oldest !== undefined && isBefore(row, oldest))),
  );
  if (fitting.length === 0) return rows;
  return { ...rows, items: [...rows.items, ...fitting].sort((a, b) => (isBefore(a, b) ? -1 : 1)) };
}

function isListed(change: Change, phases: readonly string[]): boolean {
  return change.deletedAt === null && (phases.length === 0 || phases.includes(change.status.phase));
}

/** Whether the gateway lists `a` before `b`: newest first, and by uid among objects of the same time. */
function isBefore(a: Row, b: Row): boolean {
  const [left, right] = [instantKey(a.createdAt), instantKey(b.createdAt)];
  return left === right ? a.uid > b.uid : left > right;
}

/** Return a text that sorts like the time. The gateway omits a fraction of zero, and times are in UTC. */
export function instantKey(time: string): string {
  const [seconds = "", fraction = ""] = time.replace(/Z$/, "").split(".");
  return `${seconds}.${fraction.padEnd(6, "0")}`;
}
