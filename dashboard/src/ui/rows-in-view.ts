/** Which rows of a long list are in view, if all rows have one height. Pure. */

/** The scroll position and the height of the part in view, in pixels. */
export interface Viewport {
  top: number;
  height: number;
}

/** Indexes of rows: from `start` to before `end`. */
export interface RowRange {
  start: number;
  end: number;
}

/** Return the rows that are in view at least in part. */
export function rowsInView({ top, height }: Viewport, rowHeight: number, count: number): RowRange {
  // A list that became shorter is scrolled by the browser only later.
  const start = Math.max(0, Math.min(Math.floor(top / rowHeight), count - Math.floor(height / rowHeight)));
  return { start, end: Math.min(count, Math.max(start, Math.ceil((top + height) / rowHeight))) };
}

/** Return also rows before and after, which are drawn so that they are ready when the reader scrolls. */
export function widened({ start, end }: RowRange, count: number, by: number): RowRange {
  return { start: Math.max(0, start - by), end: Math.min(count, end + by) };
}

/** Return the scroll position that shows a row entirely: the present one if it does. */
export function topToShow(index: number, { top, height }: Viewport, rowHeight: number): number {
  const start = index * rowHeight;
  if (start < top) return start;
  return Math.max(top, start + rowHeight - height);
}

/**
 * Return where a row is after a change of the rows, or the row that followed it if it was removed; null if none of the
 * next rows is left.
 *
 * The search begins where the row was, so its work grows with the distance that the row has moved.
 */
export function movedTo<R>(
  before: readonly R[],
  after: readonly R[],
  index: number,
  keyOf: (row: R) => string,
): number | null {
  for (let next = index; next < Math.min(before.length, index + FOLLOWING); next += 1) {
    const place = indexNear(after, keyOf(before[next] as R), next, keyOf);
    if (place !== null) return place;
  }
  return null;
}

/** The number of rows of which one must be left. */
const FOLLOWING = 20;
/** How far a row is looked for. */
const FARTHEST = 20_000;

function indexNear<R>(rows: readonly R[], key: string, index: number, keyOf: (row: R) => string): number | null {
  const isAt = (place: number) => {
    const row = rows[place];
    return row !== undefined && keyOf(row) === key;
  };
  for (let distance = 0; distance <= FARTHEST; distance += 1) {
    if (index + distance >= rows.length && index - distance < 0) return null;
    if (isAt(index + distance)) return index + distance;
    if (isAt(index - distance)) return index - distance;
  }
  return null;
}

/** A row that is followed, and its index in the present rows. If it was removed, the index is that of its follower. */
export interface Place {
  key: string;
  index: number;
}

/** Return the place after a change of the rows; null if neither the row nor one of the next rows is left. */
export function movedPlace<R>(
  place: Place | null,
  before: readonly R[],
  after: readonly R[],
  keyOf: (row: R) => string,
): Place | null {
  if (place === null) return null;
  const index = movedTo(before, after, place.index, keyOf);
  if (index === place.index) return place;
  return index === null ? null : { key: place.key, index };
}
