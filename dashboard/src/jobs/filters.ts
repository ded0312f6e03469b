/** The filters of the table of jobs, which the address shows and a list request carries. */
import { JOB_KINDS, JOB_PHASES } from "./vocabulary";

/** The filters that take several values, and those that take one. Each is a query parameter of the address. */
const MANY = ["namespace", "kind", "phase"] as const;
const ONE = ["label", "text", "queue", "since", "owner"] as const;

/** The owner that stands for the user of this page. */
export const ME = "me";

export const NO_FILTERS: Filters = {
  namespace: [],
  kind: [],
  phase: [],
  label: "",
  text: "",
  queue: "",
  since: "",
  owner: "",
};

export type ManyFilter = (typeof MANY)[number];
export type OneFilter = (typeof ONE)[number];

export type Filters = Record<ManyFilter, readonly string[]> & Record<OneFilter, string>;

/** The periods that the filter of time offers, in seconds. */
export const PERIODS: Readonly<Record<string, number>> = {
  "1h": 3600,
  "24h": 86_400,
  "7d": 7 * 86_400,
  "30d": 30 * 86_400,
};

export function filtersOf(query: URLSearchParams): Filters {
  const since = query.get("since") ?? "";
  return {
    namespace: unique(query.getAll("namespace")),
    kind: JOB_KINDS.filter((kind) => query.getAll("kind").includes(kind)),
    phase: JOB_PHASES.filter((phase) => query.getAll("phase").includes(phase)),
    label: query.get("label") ?? "",
    text: query.get("text") ?? "",
    queue: query.get("queue") ?? "",
    since: since in PERIODS ? since : "",
    owner: query.get("owner") ?? "",
  };
}

export function queryOf(filters: Filters): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of MANY) for (const value of filters[name]) query.append(name, value);
  for (const name of ONE) if (filters[name] !== "") query.set(name, filters[name]);
  return query;
}

/** Add the value if it is absent, otherwise remove it. */
export function toggled(filters: Filters, name: ManyFilter, value: string): Filters {
  const values = filters[name];
  const changed = values.includes(value) ? values.filter((each) => each !== value) : [...values, value];
  return { ...filters, [name]: changed };
}

export function isFiltered(filters: Filters): boolean {
  return queryOf(filters).size > 0;
}

/** Return the parameters of a list request. `now` is in milliseconds, as the gateway's clock shows it. */
export function listParameters(filters: Filters, now: number) {
  const period = PERIODS[filters.since];
  return {
    ...(filters.namespace.length > 0 && { namespace: [...filters.namespace] }),
    ...(filters.kind.length > 0 && { kind: JOB_KINDS.filter((kind) => filters.kind.includes(kind)) }),
    ...(filters.phase.length > 0 && { phase: JOB_PHASES.filter((phase) => filters.phase.includes(phase)) }),
    ...(filters.label !== "" && { labelSelector: filters.label }),
    ...(filters.text !== "" && { search: filters.text }),
    ...(filters.queue !== "" && { queue: filters.queue }),
    ...(filters.owner !== "" && { createdBy: filters.owner }),
    ...(period !== undefined && { createdAfter: new Date(now - period * 1000).toISOString() }),
  };
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values.filter((value) => value !== ""))];
}
