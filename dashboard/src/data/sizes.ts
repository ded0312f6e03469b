/** Sizes and shares of caches. Pure. */
import type { SampleSet, SampleSetSummary } from "../api/types";

export type CacheFigures = NonNullable<SampleSetSummary["status"]["cache"]>;
export type NodeCache = SampleSet["nodes"][number];

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

/** Return a size in binary units, as the gateway writes sizes: `1.5 GiB`. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 ? value.toFixed(0) : value.toFixed(1);
  return `${digits} ${UNITS[unit]}`;
}

/** Return which share of the data is cached, from 0 to 1. Data that several nodes cache counts once. */
export function cachedShare({ cachedBytes, totalBytes, whole }: CacheFigures): number {
  if (whole) return 1;
  return totalBytes === 0 ? 0 : Math.min(1, cachedBytes / totalBytes);
}

/** Return which share of the data a node has cached, from 0 to 1; null if that or the size of the data is not known. */
export function nodeShare({ cachedBytes }: NodeCache, totalBytes: number | null): number | null {
  if (cachedBytes === null || totalBytes === null || totalBytes === 0) return null;
  return Math.min(1, cachedBytes / totalBytes);
}

/** Say how much a node has cached: `0.5 GiB, 25 % of the data`. */
export function nodeText(node: NodeCache, totalBytes: number | null): string {
  if (node.cachedBytes === null) return "not known";
  const share = nodeShare(node, totalBytes);
  const size = sizeText(node.cachedBytes);
  return share === null ? size : `${size}, ${Math.floor(share * 100)} % of the data`;
}

/** Say how much is cached: `1.5 GiB of 2.0 GiB, 75 %`. */
export function cachedText(cache: CacheFigures): string {
  const { cachedBytes, totalBytes } = cache;
  if (totalBytes === 0) return "no data";
  const sizes = `${sizeText(cachedBytes)} of ${sizeText(totalBytes)}`;
  if (cachedBytes > totalBytes) return `${sizes}, all; several nodes have the same data`;
  // A share of nearly 1 is not all of it.
  const percent = Math.floor(cachedShare(cache) * 100);
  return `${sizes}, ${cache.whole ? 100 : percent} %`;
}
