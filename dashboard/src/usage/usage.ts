/** Sums of usage as the bars of a chart and as rows of a table. Pure. */
import type { UsageGroup, UsagePage, Uses } from "../api/types";

/** The uses in the order of the bars, with their words and the tones of their colours. */
export const USES = [
  ["useful", "Useful", "succeeded"],
  ["repeated", "Repeated", "failed"],
  ["disrupted", "Disrupted", "unknown"],
  ["idle", "Idle", "deleted"],
] as const;

export type UseName = (typeof USES)[number][0];

/** By what the table adds up. */
export const DIMENSIONS = ["namespace", "user", "queue", "kind"] as const;
export type DimensionName = (typeof DIMENSIONS)[number];

/** The spans that the page offers, in days. */
export const SPANS = [7, 30, 90, 365] as const;

const DAY = 86_400_000;
const HOUR = 3600;
const GIB = 2 ** 30;

/** A bar of the chart: the hours of each use on one day, each above the one before. */
export interface Bar {
  day: string;
  hours: Readonly<Record<UseName, number>>;
  total: number;
}

/** Return the first of so many days that end today, in UTC, and the last one. */
export function daysUntil(now: number, count: number): [string, string] {
  return [dayOf(now - (count - 1) * DAY), dayOf(now)];
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Return a bar for each day of a span, also for those on which nothing was used. */
export function barsOf(groups: readonly UsageGroup[], resource: string, first: string, last: string): Bar[] {
  const byDay = new Map(groups.map((group) => [group.day, group.resources[resource]]));
  const bars: Bar[] = [];
  for (let time = Date.parse(first); time <= Date.parse(last); time += DAY) {
    const day = dayOf(time);
    const uses = byDay.get(day);
    const hours = { useful: 0, repeated: 0, disrupted: 0, idle: 0 };
    for (const [use] of USES) hours[use] = uses === undefined ? 0 : hoursOf(resource, uses[use]);
    bars.push({ day, hours, total: uses === undefined ? 0 : hoursOf(resource, uses.total) });
  }
  return bars;
}

/** Return the resources of all groups: CPU and memory first, then the others by name. */
export function resourcesOf(groups: readonly UsageGroup[]): string[] {
  const found = [...new Set(groups.flatMap((group) => Object.keys(group.resources)))].sort();
  const first = ["cpu", "memory"].filter((resource) => found.includes(resource));
  return [...first, ...found.filter((resource) => !first.includes(resource))];
}

/** Return the hours of cores, GiB or devices that seconds of a resource are. */
export function hoursOf(resource: string, seconds: number): number {
  return seconds / HOUR / (isBytes(resource) ? GIB : 1);
}

export function isBytes(resource: string): boolean {
  return resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
}

/** Name the hours of a resource: `core hours`, `GiB hours of memory`. */
export function unitOf(resource: string): string {
  if (resource === "cpu") return "core hours";
  return isBytes(resource) ? `GiB hours of ${resource}` : `hours of ${resource}`;
}

/** Say hours with the digits that matter: `0.05`, `1.5`, `1 234`. */
export function hoursText(hours: number): string {
  if (hours === 0) return "0";
  if (hours < 0.01) return "< 0.01";
  const digits = hours < 10 ? 2 : hours < 100 ? 1 : 0;
  return hours.toLocaleString("en", { maximumFractionDigits: digits }).replaceAll(",", " ");
}

/** Say a share of the whole: `12 %`; empty without a whole. */
export function shareText(part: number, whole: number): string {
  if (whole === 0) return "";
  const share = (100 * part) / whole;
  return share > 0 && share < 1 ? "< 1 %" : `${Math.round(share)} %`;
}

/** Say that groups are missing from those that were read; null if they are all. */
export function restText({ items, nextPageToken }: Pick<UsagePage, "items" | "nextPageToken">): string | null {
  return nextPageToken === null ? null : `These are the first ${items.length} by name. The CSV has all.`;
}

/** Return the largest sum of a scale with a round number, so that the chart has room for the highest bar. */
export function scaleOf(bars: readonly Bar[]): number {
  const most = Math.max(0, ...bars.map((bar) => bar.total));
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10) * power;
}

/** Return the uses of a resource in a group; zeros if it has none. */
export function usesOf(group: UsageGroup, resource: string): Uses {
  return group.resources[resource] ?? { useful: 0, repeated: 0, disrupted: 0, idle: 0, total: 0 };
}
