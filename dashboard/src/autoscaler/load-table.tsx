import { useState } from "react";
import type { AutoscalerRun } from "../api/types";
import { type DataColumn, DataTable } from "../ui/data-table";
import { localTime } from "../ui/durations";
import { percentText, type Resource, shareOf } from "./amounts";
import { runText } from "./series";

/** The figures of the chart as text. It is rendered only while it is open. */
export function LoadTable({ runs }: { runs: readonly AutoscalerRun[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The chart as a table</summary>
      {isOpen && (
        <DataTable
          caption="Load at each run, the newest first"
          columns={COLUMNS}
          rows={runs}
          keyOf={(run) => String(run.id)}
          empty="There is no run."
        />
      )}
    </details>
  );
}

const COLUMNS: readonly DataColumn<AutoscalerRun>[] = [
  { title: "Time", cell: (run) => <time dateTime={run.at}>{localTime(run.at)}</time> },
  { title: "CPU requested", cell: (run) => share(run, "cpu") },
  { title: "Memory requested", cell: (run) => share(run, "memory") },
  { title: "Maximum load", cell: (run) => percentText(run.settings.maxLoad) },
  { title: "Result", className: "wrap", cell: runText },
];

function share({ capacity }: AutoscalerRun, resource: Resource): string {
  const value = capacity === null ? null : shareOf(capacity, resource);
  return value === null ? "unknown" : percentText(value);
}
