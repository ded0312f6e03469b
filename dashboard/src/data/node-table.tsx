import type { SampleSet } from "../api/types";
import { type DataColumn, DataTable } from "../ui/data-table";
import { When } from "../ui/when";
import { ShareBar } from "./share-bar";
import { type NodeCache, nodeShare, nodeText } from "./sizes";

/** What each node of a set has cached. */
export function NodeTable({ set }: { set: SampleSet }) {
  const totalBytes = set.status.cache?.totalBytes ?? null;
  return (
    <>
      <DataTable
        caption="Caches of the nodes"
        columns={columnsFor(totalBytes)}
        rows={set.nodes}
        keyOf={(node) => node.node}
        empty="No runtime server runs on a node."
      />
      {set.nodes.length > 0 && (
        <p className="secondary">
          Asked <When time={set.status.observedAt} />. Each server measures its cache every 30 s, and after each job.
        </p>
      )}
    </>
  );
}

function columnsFor(totalBytes: number | null): readonly DataColumn<NodeCache>[] {
  return [
    { title: "Node", className: "wrap", cell: ({ node }) => node },
    { title: "Runtime server", className: "wrap", cell: ({ server }) => server },
    { title: "Cached", cell: (node) => <NodeBar node={node} totalBytes={totalBytes} /> },
    { title: "Message", className: "wrap", cell: ({ message }) => message },
  ];
}

function NodeBar({ node, totalBytes }: { node: NodeCache; totalBytes: number | null }) {
  const share = nodeShare(node, totalBytes);
  return (
    <span className="cached-bar">
      {share !== null && <ShareBar share={share} />}
      <span className="secondary">{nodeText(node, totalBytes)}</span>
    </span>
  );
}
