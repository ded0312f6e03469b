import { useState } from "react";
import type { AutoscalerRun } from "../api/types";
import { When } from "../ui/when";
import { percentText, shareOf } from "./amounts";
import { DecisionTable } from "./decision-table";
import { runText } from "./series";
import { Waiting } from "./waiting";

/** The runs, each with its decisions on request. The newest is open. */
export function RunTable({ runs }: { runs: readonly AutoscalerRun[] }) {
  return runs.map((run, index) => <Run key={run.id} run={run} isFirst={index === 0} />);
}

function Run({ run, isFirst }: { run: AutoscalerRun; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(isFirst);
  return (
    <details className="run" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <When time={run.at} /> · {runText(run)}
        <span className="secondary"> · {loadText(run)}</span>
      </summary>
      {isOpen && (
        <>
          {run.waiting.length > 0 && (
            <>
              <p>Jobs that waited for room:</p>
              <Waiting jobs={run.waiting} />
            </>
          )}
          <DecisionTable decisions={run.decisions} isRehearsal={false} />
        </>
      )}
    </details>
  );
}

function loadText({ capacity, settings }: AutoscalerRun): string {
  if (capacity === null) return `maximum load ${percentText(settings.maxLoad)}`;
  const [cpu, memory] = [shareOf(capacity, "cpu"), shareOf(capacity, "memory")];
  const parts = [cpu !== null && `CPU ${percentText(cpu)}`, memory !== null && `memory ${percentText(memory)}`];
  return `${parts.filter(Boolean).join(", ")} requested of at most ${percentText(settings.maxLoad)}`;
}
