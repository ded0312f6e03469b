import type { ScalingDecision } from "../api/types";
import { hashOf } from "../routing/location";
import { type DataColumn, DataTable } from "../ui/data-table";
import { requestText, verdictText } from "./amounts";

/** The decisions of a run, in words. */
export function DecisionTable({
  decisions,
  isRehearsal,
}: {
  decisions: readonly ScalingDecision[];
  isRehearsal: boolean;
}) {
  return (
    <DataTable
      caption="Decisions"
      columns={isRehearsal ? COLUMNS : [...COLUMNS, RESULT]}
      rows={decisions}
      keyOf={(decision) => `${decision.uid} ${decision.task}`}
      empty="There is no elastic job in your namespaces."
    />
  );
}

const COLUMNS: readonly DataColumn<ScalingDecision>[] = [
  {
    title: "Job",
    className: "wrap",
    cell: (decision) => (
      <>
        <a href={hashOf(["jobs", decision.uid])}>{decision.name}</a>{" "}
        <span className="secondary">{decision.namespace}</span>
      </>
    ),
  },
  { title: "Task", cell: (decision) => decision.task },
  { title: "Replicas", cell: (decision) => <Sizes decision={decision} /> },
  { title: "Each requests", cell: (decision) => requestText(decision.request) },
  { title: "Decision", cell: (decision) => <strong>{verdictText(decision.verdict)}</strong> },
  { title: "Why", className: "wrap", cell: (decision) => decision.message },
];

const RESULT: DataColumn<ScalingDecision> = {
  title: "Result",
  className: "wrap",
  cell: (decision) => resultText(decision),
};

function Sizes({ decision: { fromReplicas, toReplicas, minReplicas, maxReplicas } }: { decision: ScalingDecision }) {
  const size = fromReplicas === toReplicas ? `${fromReplicas}` : `${fromReplicas} → ${toReplicas}`;
  return (
    <>
      {size}{" "}
      <span className="secondary">
        ({minReplicas} to {maxReplicas})
      </span>
    </>
  );
}

function resultText({ applied, refusal, fromReplicas, toReplicas }: ScalingDecision): string {
  if (applied) return "resized";
  if (refusal !== null) return `not resized: ${refusal}`;
  return fromReplicas === toReplicas ? "" : "not resized: the autoscaler was off";
}
