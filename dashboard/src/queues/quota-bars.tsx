import type { Quota } from "../api/types";
import { sharesOf, usageText } from "./queues";
import "./queues.css";

interface QuotaBarsProps {
  resources: readonly Quota[];
  /** Whether to name the flavors, also if there is only one. */
  hasFlavors?: boolean;
}

/** A bar for each resource of a queue, with its use as text. */
export function QuotaBars({ resources, hasFlavors = false }: QuotaBarsProps) {
  if (resources.length === 0) return <span className="secondary">not known</span>;
  const isNamed = hasFlavors || new Set(resources.map((each) => each.flavor)).size > 1;
  return (
    <ul className="quotas">
      {resources.map((quota) => (
        <li key={`${quota.flavor} ${quota.resource}`}>
          <span>
            {quota.resource}
            {isNamed && <span className="secondary"> {quota.flavor}</span>}
          </span>
          <QuotaBar quota={quota} />
          <span className="secondary">{usageText(quota)}</span>
        </li>
      ))}
    </ul>
  );
}

/** What the queue uses of the quota, and what other queues use of it. The text beside it says the same. */
function QuotaBar({ quota }: { quota: Quota }) {
  const shares = sharesOf(quota);
  if (shares === null) return null;
  const { own, others, limit } = shares;
  return (
    <svg className="progress" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect className="bucket-none" x={0} y={0} width={100} height={8} />
      <rect className="bucket-running" x={0} y={0} width={own * 100} height={8} />
      <rect className="bucket-deleted" x={own * 100} y={0} width={others * 100} height={8} />
      {limit < 1 && <rect className="quota-limit" x={limit * 100} y={0} width={0.7} height={8} />}
    </svg>
  );
}

/** What the colours of a bar mean. */
export function Legend() {
  return (
    <p className="secondary">
      A bar is the quota of the ClusterQueue, which its queues share: <Mark className="bucket-running" /> used by this
      queue, <Mark className="bucket-deleted" /> used by others.
    </p>
  );
}

function Mark({ className }: { className: string }) {
  return (
    <svg className="quota-mark" viewBox="0 0 10 8" aria-hidden="true">
      <rect className={className} x={0} y={0} width={10} height={8} />
    </svg>
  );
}
