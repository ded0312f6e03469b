import { describe, expect, it } from "vitest";
import type { Caller, System } from "../src/api/types";
import { callerFacts, factsOf, seconds } from "../src/system/facts";

const NOW = Date.parse("2026-01-01T00:01:00Z");

const HEALTHY: System = {
  version: "1.2.3",
  schemaRevision: "0011",
  database: { ok: true, detail: "" },
  controller: { ok: true, state: "Running", message: "" },
  lease: { held: true, epoch: 4, expiresAt: "2026-01-01T00:01:10Z" },
  mirror: { observedAt: "2026-01-01T00:00:58Z", ageSeconds: 2, stale: false, staleAfterSeconds: 30 },
  queue: { reconciles: 0, waitingSince: null },
  feed: { position: "7.42", backlog: 0 },
  cluster: { contact: "Connected", latencySeconds: { p50: 0.008, p99: 0.12 } },
  clock: { ok: true, message: "", aheadSeconds: 0 },
  features: { autoscaler: false, podPolicy: "baseline", missingNamespaces: "refuse", maxReplicas: 100 },
};

const facts = (change: Partial<System>) => factsOf({ ...HEALTHY, ...change }, NOW).flatMap((group) => group.facts);
const bad = (change: Partial<System>) =>
  facts(change)
    .filter((fact) => fact.state === "bad")
    .map(({ name, value }) => `${name}: ${value}`);

describe("factsOf", () => {
  it("finds nothing wrong with a healthy system, and has no remedies", () => {
    expect(bad({})).toEqual([]);
    expect(facts({}).filter((fact) => fact.remedy !== "")).toEqual([]);
  });

  it.each<[Partial<System>, string[]]>([
    [{ database: { ok: false, detail: "disk full" } }, ["Database: disk full"]],
    [{ controller: { ok: true, state: "Unreachable", message: "refused" } }, ["Controller: Unreachable: refused"]],
    [{ controller: { ok: false, state: "WrongCluster", message: "" } }, ["Controller: WrongCluster"]],
    [{ controller: { ok: true, state: "Syncing", message: "listing" } }, []],
    [{ lease: { held: false, epoch: 4, expiresAt: null } }, ["Lease: free, epoch 4"]],
    [{ lease: null, feed: null, schemaRevision: null }, []],
    [{ queue: { reconciles: 9, waitingSince: "2026-01-01T00:00:31Z" } }, []],
    [{ queue: { reconciles: 9, waitingSince: "2026-01-01T00:00:00Z" } }, ["Queue: 9 jobs wait, the first for 60s"]],
    [
      { mirror: { observedAt: null, ageSeconds: null, stale: true, staleAfterSeconds: 30 } },
      ["Freshness: stale, never observed"],
    ],
    [{ cluster: { contact: "Unknown", latencySeconds: { p50: null, p99: null } } }, ["Contact: Unknown"]],
    [
      { cluster: { contact: "Connected", latencySeconds: { p50: 0.2, p99: 12.4 } } },
      ["Latency: half of the calls within 200 ms, 99 % within 12 s"],
    ],
    [{ feed: { position: "7.42", backlog: 5000 } }, ["Backlog: 5000 changes"]],
    [{ clock: { ok: false, message: "a clock is wrong", aheadSeconds: -3600 } }, ["Clocks: a clock is wrong"]],
    [{ clock: null }, []],
  ])("%j", (change, expected) => expect(bad(change)).toEqual(expected));

  it("says for each bad value what to do", () => {
    const broken = facts({
      database: { ok: false, detail: "" },
      controller: { ok: false, state: "Waiting", message: "" },
      lease: { held: false, epoch: 0, expiresAt: null },
      mirror: { ...HEALTHY.mirror, stale: true },
      queue: { reconciles: 1, waitingSince: "2026-01-01T00:00:00Z" },
      cluster: { contact: "Unreachable", latencySeconds: { p50: 5, p99: 9 } },
      feed: { position: "7.42", backlog: 5000 },
      clock: { ok: false, message: "a clock is wrong", aheadSeconds: 0 },
    }).filter((fact) => fact.state === "bad");
    expect(broken).toHaveLength(9);
    expect(broken.filter((fact) => fact.remedy === "" || fact.meaning === "")).toEqual([]);
  });
});

describe("callerFacts", () => {
  const values = (change: Partial<Caller>) => {
    const caller = {
      name: "ci",
      actorId: "token:Zk3vQ8xY1b",
      role: "submitter",
      namespaces: ["a", "b"],
      administers: false,
      expiresAt: null,
      ...change,
    };
    return callerFacts(caller as Caller, NOW).facts.map((fact) => fact.value);
  };

  it.each<[Partial<Caller>, string[]]>([
    [{}, ["ci", "token:Zk3vQ8xY1b", "submitter", "a, b", "never"]],
    [{ namespaces: [] }, ["ci", "token:Zk3vQ8xY1b", "submitter", "none", "never"]],
    [
      { role: "admin", namespaces: null, administers: true, expiresAt: "2026-01-01T01:01:00Z" },
      ["ci", "token:Zk3vQ8xY1b", "admin of all namespaces", "all that jobgate serves", "in 60m"],
    ],
  ])("%j", (change, expected) => expect(values(change)).toEqual(expected));
});

describe("seconds", () => {
  it.each([
    [0.0074, "7.4 ms"],
    [0.12, "120 ms"],
    [1.26, "1.3 s"],
    [12.4, "12 s"],
  ])("%d", (value, text) => expect(seconds(value)).toBe(text));
});
