import type { Aggregate, Job } from "../api/types";

/** The buckets of the aggregate, in the order in which a replica passes them. */
const BUCKETS = ["succeeded", "running", "pending", "creating", "failed", "unknown", "deleted"] as const;

/** Say the aggregate in words: `2 running, 1 failed`. */
export function aggregateText(aggregate: Aggregate): string {
  const parts = BUCKETS.filter((bucket) => aggregate[bucket] > 0).map((bucket) => `${aggregate[bucket]} ${bucket}`);
  return parts.length === 0 ? "no replicas" : parts.join(", ");
}

/**
 * Return how many replicas run or have succeeded, and how many the job needs, as `jobgate list` does.
 *
 * A job that has reached its goal does not need the replicas that it stops then, such as parameter servers.
 */
export function progressOf({ phase, aggregate }: Pick<Job["status"], "phase" | "aggregate">) {
  const total = BUCKETS.reduce((sum, bucket) => sum + aggregate[bucket], 0);
  const needed = phase === "Succeeded" ? total - aggregate.deleted : total;
  return { done: aggregate.running + aggregate.succeeded, needed };
}

/** A bar whose parts are the shares of the buckets, and its numbers. It is an SVG: its widths are data, not style. */
export function AggregateBar({ status }: { status: Pick<Job["status"], "phase" | "aggregate"> }) {
  const { aggregate } = status;
  const { done, needed } = progressOf(status);
  const text = aggregateText(aggregate);
  let start = 0;
  const parts = BUCKETS.filter((bucket) => aggregate[bucket] > 0).map((bucket) => {
    const width = (aggregate[bucket] / Math.max(1, needed)) * 100;
    start += width;
    return <rect key={bucket} className={`bucket-${bucket}`} x={start - width} y={0} width={width} height={8} />;
  });
  return (
    <span className="progress-field">
      <svg className="progress" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={text}>
        <title>{text}</title>
        <rect className="bucket-none" x={0} y={0} width={100} height={8} />
        {parts}
      </svg>
      <span className="progress-count" aria-hidden>
        {done}/{needed}
      </span>
    </span>
  );
}
