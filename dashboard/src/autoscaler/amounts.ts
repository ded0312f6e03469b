/** Amounts of resources in words, and shares of a cluster. Pure. */
import type { Amount, Capacity, Verdict } from "../api/types";

export const RESOURCES = ["cpu", "memory", "gpu"] as const;
export type Resource = (typeof RESOURCES)[number];

export const RESOURCE_NAMES: Readonly<Record<Resource, string>> = { cpu: "CPU", memory: "Memory", gpu: "GPU" };

const FIELDS: Readonly<Record<Resource, keyof Amount>> = { cpu: "cpuMilli", memory: "memoryMega", gpu: "gpu" };

export function cpuText(milli: number): string {
  return milli > 0 && milli < 1000 ? `${milli}m` : `${trimmed(milli / 1000)} CPU`;
}

/** `mega` counts 10^6 bytes, as the autoscaler does. */
export function memoryText(mega: number): string {
  if (mega < 1000) return `${mega} MB`;
  return mega < 1_000_000 ? `${trimmed(mega / 1000)} GB` : `${trimmed(mega / 1_000_000)} TB`;
}

export function amountText(amount: Amount, resource: Resource): string {
  const value = amount[FIELDS[resource]];
  if (resource === "cpu") return cpuText(value);
  return resource === "memory" ? memoryText(value) : `${value}`;
}

/** Return the requested share of the total, which may exceed 1: pods without a node count. Null without such a resource. */
export function shareOf(capacity: Capacity, resource: Resource): number | null {
  const total = capacity.total[FIELDS[resource]];
  return total === 0 ? null : capacity.requested[FIELDS[resource]] / total;
}

/** Return the resources that the nodes have, or that pods request although no node has them. */
export function resourcesOf({ total, requested }: Capacity): Resource[] {
  return RESOURCES.filter((resource) => total[FIELDS[resource]] > 0 || requested[FIELDS[resource]] > 0);
}

export function percentText(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Return the requests of a replica in words: `500m CPU, 200 MB`. */
export function requestText({ cpuMilli, memoryMega, gpu }: Amount): string {
  const text = cpuText(cpuMilli);
  const cpu = text.endsWith("CPU") ? text : `${text} CPU`;
  return [cpu, memoryText(memoryMega), ...(gpu > 0 ? [`${gpu} GPU`] : [])].join(", ");
}

const VERDICTS: Readonly<Record<Verdict, string>> = {
  Grows: "grows",
  Shrinks: "shrinks",
  AtMax: "has its most replicas",
  NoNodeFits: "no node has room for one more replica",
  CpuAtLoad: "one more replica would exceed the maximum load of CPU",
  MemoryAtLoad: "one more replica would exceed the maximum load of memory",
  GpuFull: "the cluster has too few GPUs for one more replica",
  FixedSize: "has only one size",
  NotRunning: "does not run, and no job waits for room",
  Paused: "is paused",
  OptedOut: "opted out with an annotation",
  Frozen: "was resized recently",
};

export function verdictText(verdict: Verdict): string {
  return VERDICTS[verdict];
}

function trimmed(value: number): string {
  return String(Number(value.toFixed(value < 10 ? 2 : 1)));
}
