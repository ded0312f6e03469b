/** The axis of the timeline: which part of time it shows, and where. Times are milliseconds, places are pixels. */

/** A part of time. */
export interface Range {
  start: number;
  end: number;
}

export interface Tick {
  at: number;
  label: string;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The distances of ticks that people read easily. */
const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((count) => count * DAY),
];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const LABEL_WIDTH = 88;
const SHORTEST = SECOND;
/** The share of the range that stays free at its end, so that the last bars and marks are not cut off. */
const MARGIN = 0.02;

/** Return the range from the first time to the last one, which is now while the job is live. */
export function fitting(times: Iterable<number>, now: number | null): Range {
  let [start, end] = [Number.POSITIVE_INFINITY, now ?? Number.NEGATIVE_INFINITY];
  for (const time of times) {
    start = Math.min(start, time);
    end = Math.max(end, time);
  }
  if (!Number.isFinite(start)) start = Number.isFinite(end) ? end : 0;
  const length = Math.max(SHORTEST, end - start);
  return { start, end: start + length * (1 + MARGIN) };
}

/** Return the place of a time in a plot of this width. */
export function placeOf(time: number, { start, end }: Range, width: number): number {
  return ((time - start) / (end - start)) * width;
}

export function timeAt(place: number, { start, end }: Range, width: number): number {
  return start + (place / width) * (end - start);
}

/** Return the range that is `factor` times as long, with the same middle, within `limit`. */
export function zoomed(range: Range, factor: number, limit: Range): Range {
  const middle = (range.start + range.end) / 2;
  const length = (range.end - range.start) * factor;
  return within({ start: middle - length / 2, end: middle + length / 2 }, limit);
}

/** Return the range moved by a share of its length, within `limit`. */
export function moved(range: Range, share: number, limit: Range): Range {
  const distance = (range.end - range.start) * share;
  return within({ start: range.start + distance, end: range.end + distance }, limit);
}

/** Return the range moved, and if necessary shortened, so that it lies within `limit`. */
export function within(range: Range, limit: Range): Range {
  const longest = limit.end - limit.start;
  const length = Math.min(longest, Math.max(SHORTEST, range.end - range.start));
  const start = Math.min(limit.end - length, Math.max(limit.start, range.start));
  return { start, end: start + length };
}

/** Return the ticks of a plot of this width, at round times of the reader's zone: `zone` minutes ahead of UTC. */
export function ticksOf(range: Range, width: number, zone: number): Tick[] {
  const fewest = ((range.end - range.start) * LABEL_WIDTH) / Math.max(width, LABEL_WIDTH);
  const step = STEPS.find((each) => each >= fewest) ?? Math.ceil(fewest / (365 * DAY)) * 365 * DAY;
  const offset = zone * MINUTE;
  const ticks: Tick[] = [];
  let day: number | null = null;
  for (let local = Math.ceil((range.start + offset) / step) * step; local - offset <= range.end; local += step) {
    const isNewDay = day !== null && Math.floor(local / DAY) !== day;
    day = Math.floor(local / DAY);
    ticks.push({ at: local - offset, label: tickLabel(local, step, isNewDay) });
  }
  return ticks;
}

function tickLabel(local: number, step: number, isNewDay: boolean): string {
  const date = new Date(local);
  const two = (count: number) => String(count).padStart(2, "0");
  if (step >= DAY || isNewDay) return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  const minutes = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  return step >= MINUTE ? minutes : `${minutes}:${two(date.getUTCSeconds())}`;
}
