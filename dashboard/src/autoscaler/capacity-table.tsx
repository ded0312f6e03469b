import type { Capacity } from "../api/types";
import { type DataColumn, DataTable } from "../ui/data-table";
import { amountText, percentText, RESOURCE_NAMES, type Resource, resourcesOf, shareOf } from "./amounts";

interface Row {
  resource: Resource;
  capacity: Capacity;
  maxLoad: number;
}

/** What pods request of what the nodes have. */
export function CapacityTable({ capacity, maxLoad }: { capacity: Capacity; maxLoad: number }) {
  const { nodes, openNodes, unboundPods, namespaces } = capacity;
  const rows = resourcesOf(capacity);
  return (
    <>
      <DataTable
        caption="Capacity and load of the cluster"
        columns={COLUMNS}
        rows={rows.map((resource): Row => ({ resource, capacity, maxLoad }))}
        keyOf={(row) => row.resource}
        empty="No node accepts pods."
      />
      <p className="secondary">
        {openNodes} of {nodes} nodes are open for pods of the autoscaler. {unboundPods}{" "}
        {unboundPods === 1 ? "pod has" : "pods have"} no node yet.
        {namespaces.length > 0 &&
          ` The controller observes only the pods of ${namespaces.join(", ")}: those of other namespaces look like free resources.`}
      </p>
    </>
  );
}

const COLUMNS: readonly DataColumn<Row>[] = [
  { title: "Resource", cell: ({ resource }) => RESOURCE_NAMES[resource] },
  { title: "Requested", cell: ({ capacity, resource }) => amountText(capacity.requested, resource) },
  { title: "Total", cell: ({ capacity, resource }) => amountText(capacity.total, resource) },
  { title: "Load", cell: (row) => <Load {...row} /> },
];

function Load({ capacity, resource, maxLoad }: Row) {
  const share = shareOf(capacity, resource);
  if (share === null) return <span className="tone-failed">no open node has any</span>;
  // GPUs may all be requested: the maximum load applies to CPU and memory.
  const limit = resource === "gpu" ? 1 : maxLoad;
  const isOver = share > limit;
  return (
    <span className="load">
      <svg className="progress" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect className="bucket-none" x={0} y={0} width={100} height={8} />
        <rect
          className={isOver ? "bucket-failed" : "bucket-running"}
          x={0}
          y={0}
          width={Math.min(100, share * 100)}
          height={8}
        />
        <rect className="load-limit" x={Math.min(99.5, limit * 100)} y={0} width={0.5} height={8} />
      </svg>
      <span>
        {percentText(share)} of at most {percentText(limit)}
        {isOver && ", too much"}
      </span>
    </span>
  );
}
