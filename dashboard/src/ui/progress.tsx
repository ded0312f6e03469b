import type { Aggregate } from "../api/types";

/** The buckets of the aggregate, in the order in which a replica passes them. */
const BUCKETS = ["succeeded", "running", "pending", "creating", "failed", "unknown", "deleted"] as const;

/** Say the aggregate in words: `2 running, 1 failed`. */
export function aggregateText(aggregate: Aggregate): string {
  const parts = BUCKETS.filter((bucket) => aggregate[bucket] > 0).map((bucket) => `${aggregate[bucket]} ${bucket}`);
  return parts.length === 0 ? "no replicas" : parts.join(", ");
}

/** A bar whose parts are the shares of the buckets. It is an SVG, because its widths are data, not style. */
export function AggregateBar({ aggregate }: { aggregate: Aggregate }) {
  const total = BUCKETS.reduce((sum, bucket) => sum + aggregate[bucket], 0);
  const text = aggregateText(aggregate);
  let start = 0;
  const parts = BUCKETS.filter((bucket) => aggregate[bucket] > 0).map((bucket) => {
    const width = (aggregate[bucket] / total) * 100;
    start += width;
    return <rect key={bucket} className={`bucket-${bucket}`} x={start - width} y={0} width={width} height={8} />;
  });
  return (
    <svg className="progress" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={text}>
      <title>{text}</title>
      <rect className="bucket-none" x={0} y={0} width={100} height={8} />
      {parts}
    </svg>
  );
}
