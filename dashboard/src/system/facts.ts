/** The state of the system in words: what each value means, and what to do if it is bad. Pure. */
import type { Caller, System } from "../api/types";
import { duration } from "../ui/durations";

export interface Fact {
  name: string;
  value: string;
  meaning: string;
  state: "good" | "bad" | "plain";
  /** What to do; empty unless the state is bad. */
  remedy: string;
}

export interface FactGroup {
  title: string;
  facts: Fact[];
}

/** Seconds after which a waiting reconcile is worth attention. Most take less than one. */
const SLOW_QUEUE = 30;
/** Seconds that a call to the API server seldom exceeds. */
const SLOW_CALL = 1;
/** Changes that streams do not show yet. They usually are published within a second. */
const LARGE_BACKLOG = 1000;

/** `now` is in milliseconds, as the gateway's clock shows it. */
export function factsOf(system: System, now: number): FactGroup[] {
  return [
    { title: "Gateway", facts: [version(system), database(system), schema(system), clocks(system)] },
    { title: "Controller", facts: [controller(system), lease(system, now), queue(system, now)] },
    { title: "Cluster", facts: [contact(system), mirror(system), latency(system)] },
    { title: "Changes", facts: [position(system), backlog(system)] },
    { title: "Configuration", facts: features(system) },
  ];
}

export function callerFacts(caller: Caller, now: number): FactGroup {
  const reach = caller.namespaces === null ? "all that jobgate serves" : caller.namespaces.join(", ") || "none";
  const expiry = caller.expiresAt === null ? "never" : `in ${duration(Date.parse(caller.expiresAt) - now)}`;
  const facts = [
    plain("Name", caller.name, "The history of objects names the caller like this. Others may have the same name."),
    plain("Identity", caller.actorId ?? "not known", "The history has it beside the name. No other actor can have it."),
    plain("Role", caller.administers ? `${caller.role} of all namespaces` : caller.role, ROLES[caller.role] ?? ""),
    plain("Namespaces", reach, "Objects of other namespaces look as if they did not exist."),
    plain("Token expires", expiry, "After that, the page asks for another token."),
  ];
  return { title: "You", facts };
}

const ROLES: Readonly<Record<string, string>> = {
  viewer: "A viewer reads everything in the namespaces of the token, logs included.",
  submitter: "A submitter also submits, edits, scales, pauses, cancels and deletes.",
  admin: "An admin of all namespaces also reads the capacity of the cluster and dry-runs the autoscaler.",
};

function version({ version }: System): Fact {
  return plain("Version", version, "The version of jobgate in the process that answered.");
}

function database({ database: { ok, detail } }: System): Fact {
  return judged({
    name: "Database",
    value: ok ? "accepts writes" : detail || "does not accept writes",
    meaning: "PostgreSQL contains every job, with its history. Requests are answered only after it has stored them.",
    isGood: ok,
    remedy:
      "Check PostgreSQL, its disk and the network to it. Repeat requests that were answered 503. See Outages in docs/operations.md.",
  });
}

function schema({ schemaRevision }: System): Fact {
  const value = schemaRevision ?? "unknown while the database does not answer";
  return plain("Database schema", value, "The latest migration of the database.");
}

function clocks({ clock }: System): Fact {
  const name = "Clocks";
  const meaning = "Deadlines and back-offs do not follow the steps of any clock.";
  if (clock === null) return plain(name, "unknown while the database does not answer", meaning);
  return judged({
    name,
    value: clock.ok ? "right" : clock.message,
    meaning,
    isGood: clock.ok,
    remedy: "Correct the clock, and see why its NTP daemon did not. See JobgateClockWrong in docs/runbooks.md.",
  });
}

const CONTROLLERS: Readonly<Record<System["controller"]["state"], readonly [string, string]>> = {
  Running: ["It carries out what users request, and records what the cluster reports.", ""],
  Syncing: ["It compares each live job with the cluster. Until that is done, statuses are old.", ""],
  Waiting: [
    "No controller is active: pods are neither created nor deleted, and statuses become old.",
    "Start a process with the role all or controller, or wait until the lease of the last one has expired.",
  ],
  Unreachable: [
    "The cluster does not answer the controller. Requests are accepted, and carried out when it is back.",
    "Check the API server of the cluster, the network to it, and the credentials of the controller.",
  ],
  WrongCluster: [
    "The cluster is not the one of this installation, so the controller does nothing.",
    "Correct the kubeconfig, or read Another cluster, or an older database in docs/operations.md.",
  ],
};

function controller({ controller: { state, message } }: System): Fact {
  const [meaning, remedy] = CONTROLLERS[state];
  return judged({
    name: "Controller",
    value: message === "" ? state : `${state}: ${message}`,
    meaning,
    isGood: remedy === "",
    remedy,
  });
}

function lease({ lease }: System, now: number): Fact {
  const name = "Lease";
  const meaning = "The lease makes one process the active controller. Its epoch increases with each takeover.";
  if (lease === null) return plain(name, "unknown while the database does not answer", meaning);
  const left = lease.expiresAt === null ? "" : `, renewed or free in ${duration(Date.parse(lease.expiresAt) - now)}`;
  return judged({
    name,
    value: lease.held ? `held, epoch ${lease.epoch}${left}` : `free, epoch ${lease.epoch}`,
    meaning,
    isGood: lease.held,
    remedy: "No process holds the lease. Start a process with the role all or controller, and read its log.",
  });
}

function queue({ queue: { reconciles, waitingSince } }: System, now: number): Fact {
  const waited = waitingSince === null ? 0 : (now - Date.parse(waitingSince)) / 1000;
  const since = waitingSince === null ? "" : `, the first for ${duration(waited * 1000)}`;
  return judged({
    name: "Queue",
    value: `${reconciles} ${reconciles === 1 ? "job waits" : "jobs wait"}${since}`,
    meaning: "Jobs that have changed and wait for the controller.",
    isGood: waited < SLOW_QUEUE,
    remedy: "The controller is busy, or the cluster answers slowly: compare the latency below.",
  });
}

const CONTACTS: Readonly<Record<System["cluster"]["contact"], readonly [string, string]>> = {
  Connected: ["The controller receives the changes of the cluster.", ""],
  Syncing: ["The controller compares each live job with the cluster.", ""],
  Unreachable: ["The cluster does not answer.", "Check the API server of the cluster and the network to it."],
  WrongCluster: ["The cluster is another one.", "See Another cluster, or an older database in docs/operations.md."],
  Unknown: ["No controller has reported recently.", "See the state of the controller above."],
};

function contact({ cluster }: System): Fact {
  const [meaning, remedy] = CONTACTS[cluster.contact];
  return judged({ name: "Contact", value: cluster.contact, meaning, isGood: remedy === "", remedy });
}

function mirror({ mirror: { ageSeconds, stale, staleAfterSeconds } }: System): Fact {
  const age = ageSeconds === null ? "never observed" : `observed ${duration(ageSeconds * 1000)} ago`;
  return judged({
    name: "Freshness",
    value: stale ? `stale, ${age}` : age,
    meaning: `The last contact with the cluster. Statuses are called stale after ${duration(staleAfterSeconds * 1000)} without one.`,
    isGood: !stale,
    remedy: "Statuses may have changed since. The states of the controller and of the contact say why.",
  });
}

function latency({ cluster: { latencySeconds } }: System): Fact {
  const { p50, p99 } = latencySeconds;
  const isMeasured = p50 !== null && p99 !== null;
  return judged({
    name: "Latency",
    value: isMeasured
      ? `half of the calls within ${seconds(p50)}, 99 % within ${seconds(p99)}`
      : "no calls in the last minute",
    meaning: "How long calls of the controller to the Kubernetes API took in the last minute.",
    isGood: !isMeasured || p99 <= SLOW_CALL,
    remedy: "The API server is slow, so pods are created and statuses change later. Check its load and that of etcd.",
  });
}

function position({ feed }: System): Fact {
  const value = feed?.position ?? "unknown while the database does not answer";
  return plain("Position", value, "The last change that streams and long polls can show.");
}

function backlog({ feed }: System): Fact {
  const count = feed?.backlog ?? 0;
  return judged({
    name: "Backlog",
    value: feed === null ? "unknown while the database does not answer" : `${count} changes`,
    meaning: "Changes that are stored and that no stream shows yet. Usually 0.",
    isGood: count < LARGE_BACKLOG,
    remedy: "Pages and clients are behind. A process that serves the API must run, and PostgreSQL must keep up.",
  });
}

function features({ features }: System): Fact[] {
  const { autoscaler, podPolicy, missingNamespaces, maxReplicas } = features;
  return [
    plain(
      "Autoscaler",
      autoscaler ? "on" : "off",
      autoscaler ? "It resizes elastic jobs." : "It only records what it would do. JOBGATE_AUTOSCALER=on turns it on.",
    ),
    plain("Pod policy", podPolicy, "The level of the Pod Security Standards that pod templates must meet."),
    plain(
      "Missing namespaces",
      missingNamespaces === "refuse" ? "refused" : "waited for",
      "What becomes of a submission to a namespace that the cluster does not have.",
    ),
    plain("Replicas", `at most ${maxReplicas} in a job`, "A job with more replicas is refused."),
  ];
}

function plain(name: string, value: string, meaning: string): Fact {
  return { name, value, meaning, state: "plain", remedy: "" };
}

interface Judged {
  name: string;
  value: string;
  meaning: string;
  isGood: boolean;
  remedy: string;
}

function judged({ isGood, remedy, ...fact }: Judged): Fact {
  return { ...fact, state: isGood ? "good" : "bad", remedy: isGood ? "" : remedy };
}

/** Return seconds in the unit that suits them. */
export function seconds(value: number): string {
  if (value < 1) return `${value < 0.01 ? (value * 1000).toFixed(1) : Math.round(value * 1000)} ms`;
  return value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`;
}
