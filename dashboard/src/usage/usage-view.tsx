import { useState } from "react";
import { ApiError } from "../api/problems";
import type { UsageGroup, UsagePage } from "../api/types";
import { usePage } from "../page-context";
import { navigate, useLocation } from "../routing/use-location";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { useNow } from "../ui/now";
import { Part } from "../ui/part";
import {
  barsOf,
  DIMENSIONS,
  type DimensionName,
  daysUntil,
  hoursOf,
  hoursText,
  resourcesOf,
  restText,
  SPANS,
  shareText,
  USES,
  unitOf,
  usesOf,
} from "./usage";
import { UsageChart } from "./usage-chart";
import { useUsage } from "./use-usage";
import "./usage.css";

/** What the jobs have used that the user may see: over time, and by namespace, user, queue or kind. */
export function UsageView() {
  const choice = useChoice();
  const [from, to] = daysUntil(useNow(), choice.days);
  const byDay = useUsage("day", from, to);
  const groups = useUsage(choice.by, from, to);
  const error = byDay.error ?? groups.error;
  const retry = () => void Promise.all([byDay.refetch(), groups.refetch()]);
  return (
    <div className="view view-page usage">
      <h1>Usage</h1>
      {error !== null && <ErrorNote error={error} onRetry={retry} />}
      {byDay.data === undefined && error === null && <Loading what="the usage" />}
      {byDay.data !== undefined && <Sums days={byDay.data} groups={groups.data} choice={choice} span={[from, to]} />}
    </div>
  );
}

interface Choice {
  by: DimensionName;
  days: number;
  resource: string | null;
}

/** The choice of the reader is a part of the address, so that a link shows the same. */
function useChoice(): Choice {
  const { query } = useLocation();
  const days = Number(query.get("days"));
  return {
    by: DIMENSIONS.find((name) => name === query.get("by")) ?? "namespace",
    days: SPANS.find((span) => span === days) ?? 30,
    resource: query.get("resource"),
  };
}

interface SumsProps {
  days: UsagePage;
  groups: UsagePage | undefined;
  choice: Choice;
  span: readonly [string, string];
}

function Sums({ days, groups, choice, span }: SumsProps) {
  const resources = resourcesOf(days.items);
  const resource = resources.find((name) => name === choice.resource) ?? resources[0];
  return (
    <>
      <Choices choice={choice} resources={resources} resource={resource} span={span} />
      {resource === undefined ? (
        <p className="secondary">No job has used anything on these days.</p>
      ) : (
        <>
          <Part what="the chart">
            <UsageChart bars={barsOf(days.items, resource, ...span)} resource={resource} />
          </Part>
          {groups !== undefined && <GroupTable page={groups} by={choice.by} resource={resource} />}
        </>
      )}
    </>
  );
}

interface ChoicesProps {
  choice: Choice;
  resources: readonly string[];
  resource: string | undefined;
  span: readonly [string, string];
}

function Choices({ choice, resources, resource, span }: ChoicesProps) {
  const choose = (changed: Partial<Choice>) => {
    const { by, days, resource: chosen } = { ...choice, ...changed };
    navigate(["usage"], { by, days: String(days), ...(chosen === null ? {} : { resource: chosen }) });
  };
  return (
    <div className="usage-choices">
      <label>
        Days{" "}
        <select value={choice.days} onChange={(event) => choose({ days: Number(event.target.value) })}>
          {SPANS.map((days) => (
            <option key={days} value={days}>
              the last {days}
            </option>
          ))}
        </select>
      </label>
      {resource !== undefined && (
        <label>
          Resource{" "}
          <select value={resource} onChange={(event) => choose({ resource: event.target.value })}>
            {resources.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        By{" "}
        <select
          value={choice.by}
          onChange={(event) => choose({ by: DIMENSIONS.find((name) => name === event.target.value) ?? "namespace" })}
        >
          {DIMENSIONS.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <CsvButton by={choice.by} span={span} />
    </div>
  );
}

/** Downloads what the table shows, of all resources. A link could not send the token of the user. */
function CsvButton({ by, span: [from, to] }: { by: DimensionName; span: readonly [string, string] }) {
  const { client } = usePage().api;
  const [error, setError] = useState<Error | null>(null);
  const download = async () => {
    setError(null);
    try {
      const query = { by: `${by},day`, from, to, format: "csv" as const };
      const { data } = await client.GET("/api/v1/usage", { params: { query }, parseAs: "blob" });
      if (data !== undefined) save(data as Blob, `usage-${by}-${from}-${to}.csv`);
    } catch (cause) {
      // The gateway closes the connection of a CSV that it cannot complete.
      setError(cause instanceof ApiError ? cause : new Error("The CSV was cut off before its end. Nothing was saved."));
    }
  };
  return (
    <>
      <button type="button" className="button" onClick={() => void download()}>
        Download CSV
      </button>
      {error !== null && <ErrorNote error={error} onRetry={() => void download()} />}
    </>
  );
}

function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}

function GroupTable({ page, by, resource }: { page: UsagePage; by: DimensionName; resource: string }) {
  const rows = [...page.items].sort((a, b) => usesOf(b, resource).total - usesOf(a, resource).total);
  const rest = restText(page);
  return (
    <section>
      <h2>By {by}</h2>
      <p className="secondary">In {unitOf(resource)}. Time in queue is that of jobs that waited and had no node.</p>
      {rest !== null && <p role="status">{rest}</p>}
      <DataTable
        caption={`Usage by ${by}`}
        columns={columnsOf(by, resource, page.currency)}
        rows={rows}
        keyOf={(group) => String(group[by])}
        empty="No job has used anything on these days."
      />
    </section>
  );
}

function columnsOf(by: DimensionName, resource: string, currency: string | null): DataColumn<UsageGroup>[] {
  const hours = (group: UsageGroup, seconds: number) => {
    const share = shareText(seconds, usesOf(group, resource).total);
    return (
      <>
        {hoursText(hoursOf(resource, seconds))} <span className="secondary">{share}</span>
      </>
    );
  };
  return [
    { title: TITLES[by], className: "wrap", cell: (group) => group[by] ?? <span className="secondary">none</span> },
    { title: "Total", className: "time", cell: (group) => hoursText(hoursOf(resource, usesOf(group, resource).total)) },
    ...USES.map(([use, title]) => ({
      title,
      className: "time",
      cell: (group: UsageGroup) => hours(group, usesOf(group, resource)[use]),
    })),
    { title: "In queue, hours", className: "time", cell: (group) => hoursText(hoursOf("jobs", group.queuedSeconds)) },
    ...(currency === null
      ? []
      : [
          {
            title: `Cost, ${currency}`,
            className: "time",
            cell: (group: UsageGroup) => (group.cost === null ? "" : group.cost.total.toFixed(2)),
          },
        ]),
  ];
}

const TITLES: Readonly<Record<DimensionName, string>> = {
  namespace: "Namespace",
  user: "User",
  queue: "Queue",
  kind: "Kind",
};
