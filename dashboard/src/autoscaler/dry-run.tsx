import { FlaskConical } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button } from "react-aria-components";
import type { Rehearsal } from "../api/types";
import { useCaller } from "../session/caller";
import { duration } from "../ui/durations";
import { ErrorNote } from "../ui/errors";
import { amountText, percentText } from "./amounts";
import { CapacityTable } from "./capacity-table";
import { DecisionTable } from "./decision-table";
import { useRehearsal } from "./use-autoscaler";
import { Waiting } from "./waiting";

/** Asks what the autoscaler would decide now, with any maximum load. Nothing is resized. */
export function DryRun({ maxLoad }: { maxLoad: number | null }) {
  const rehearsal = useRehearsal();
  const [percent, setPercent] = useState("");
  const mayRun = useCaller().data?.administers !== false;
  const run = (event: FormEvent) => {
    event.preventDefault();
    rehearsal.mutate(percent === "" ? null : Number(percent) / 100);
  };
  return (
    <section>
      <h2>Dry run</h2>
      <p className="secondary">
        Computes the decisions of the last observed state again, also for another maximum load. Nothing is resized.
      </p>
      {!mayRun && (
        <p>
          It shows the capacity of the whole cluster, so it needs the token of an admin of all namespaces. Sign out, and
          sign in with such a token.
        </p>
      )}
      <form className="dry-run-form" onSubmit={run}>
        <label className="field">
          <span className="field-name">Maximum load in percent</span>
          <input
            type="number"
            min="1"
            max="100"
            step="any"
            value={percent}
            placeholder={maxLoad === null ? "" : String(Math.round(maxLoad * 1000) / 10)}
            onChange={(event) => setPercent(event.target.value)}
            // A browser changes the number of a focused field when the wheel turns over it.
            onWheel={(event) => event.currentTarget.blur()}
          />
        </label>
        <Button type="submit" className="button" isDisabled={rehearsal.isPending || !mayRun}>
          <FlaskConical aria-hidden size={14} /> Dry-run
        </Button>
      </form>
      {rehearsal.error !== null && <ErrorNote error={rehearsal.error} />}
      {rehearsal.data !== undefined && <Result rehearsal={rehearsal.data} />}
    </section>
  );
}

function Result({ rehearsal: { ageSeconds, maxLoad, capacity, waiting, decisions, nodes } }: { rehearsal: Rehearsal }) {
  return (
    <div role="status">
      <p>
        With a maximum load of {percentText(maxLoad)}, and the state of {duration(ageSeconds * 1000)} ago:
      </p>
      <CapacityTable capacity={capacity} maxLoad={maxLoad} />
      <h3>Waiting for room</h3>
      <Waiting jobs={waiting} />
      <h3>Decisions</h3>
      <DecisionTable decisions={decisions} isRehearsal />
      <h3>Nodes</h3>
      <ul>
        {nodes.map((node) => (
          <li key={node.name}>
            {node.name}:{" "}
            {node.closed === null
              ? `${amountText(node.free, "cpu")} and ${amountText(node.free, "memory")} free, room for ${node.slots} more pods`
              : `closed: ${node.closed}`}
          </li>
        ))}
      </ul>
    </div>
  );
}
