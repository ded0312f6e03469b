import { useMemo } from "react";
import type { AutoscalerPage, AutoscalerRun } from "../api/types";
import { duration } from "../ui/durations";
import { ErrorNote, Loading } from "../ui/errors";
import { loadedLater, Part } from "../ui/part";
import { When } from "../ui/when";
import { percentText } from "./amounts";
import { CapacityTable } from "./capacity-table";
import { DryRun } from "./dry-run";
import { LoadTable } from "./load-table";
import { RunTable } from "./run-table";
import { isNotable, seriesOf } from "./series";
import { useRuns } from "./use-autoscaler";
import { Waiting } from "./waiting";
import "./autoscaler.css";

const LoadChart = loadedLater(
  () => import("./load-chart"),
  (module) => module.default,
);

/** The capacity of the cluster and its load, what waits, and what the autoscaler decided. */
export function AutoscalerView() {
  const { data, error, refetch } = useRuns();
  return (
    <div className="view view-page autoscaler">
      <h1>Autoscaler</h1>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the autoscaler's runs" />}
      {data !== undefined && <State page={data} />}
      {data?.items[0] !== undefined && <Runs runs={data.items} latest={data.items[0]} />}
      <DryRun maxLoad={data?.settings?.maxLoad ?? null} />
    </div>
  );
}

function State({ page: { enabled, settings, items } }: { page: AutoscalerPage }) {
  if (settings === null) return <p>The autoscaler has not run yet. The controller runs it periodically.</p>;
  return (
    <p>
      {enabled
        ? "The autoscaler is on: it resizes elastic jobs."
        : "The autoscaler is off: it records what it would do, and resizes no job."}{" "}
      It runs every {duration(settings.periodSeconds * 1000)}, lets jobs request {percentText(settings.maxLoad)} of the
      cluster, and leaves a job alone for {duration(settings.freezeSeconds * 1000)} after a resize. The last run was{" "}
      <When time={items[0]?.at ?? null} />.
    </p>
  );
}

function Runs({ runs, latest }: { runs: readonly AutoscalerRun[]; latest: AutoscalerRun }) {
  const series = useMemo(() => seriesOf(runs), [runs]);
  const hasCapacity = runs.some((run) => run.capacity !== null);
  const notable = runs.filter((run) => run === latest || isNotable(run));
  return (
    <>
      <section>
        <h2>Capacity and load</h2>
        {latest.error !== null && <p className="tone-failed">The last run made no decision: {latest.error}</p>}
        {latest.capacity === null ? (
          <p>{hasCapacity ? "The last run could not read the cluster." : NO_CAPACITY}</p>
        ) : (
          <CapacityTable capacity={latest.capacity} maxLoad={latest.settings.maxLoad} />
        )}
      </section>
      <section>
        <h2>Waiting for room</h2>
        <Waiting jobs={latest.waiting} />
      </section>
      {hasCapacity && (
        <section>
          <h2>Load over time</h2>
          <Part what="the chart">
            <LoadChart series={series} />
          </Part>
          <LoadTable runs={runs} />
        </section>
      )}
      <section>
        <h2>Runs</h2>
        <p className="secondary">
          The last run, and those of the last {runs.length} that changed something, would have, or failed.
        </p>
        <RunTable runs={notable} />
      </section>
    </>
  );
}

const NO_CAPACITY =
  "The capacity of the cluster is shown only with the token of an admin of all namespaces. The decisions about jobs in your namespaces are below.";
