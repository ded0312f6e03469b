/** What the API reports about a sample set, in words. Pure. */
import type { SampleSet } from "../api/types";

const PHASES: Readonly<Record<SampleSet["status"]["phase"], string>> = {
  "": "The Secret is checked, and the volume and its claim are created.",
  Bound: "The volume is bound. The runtime servers are created and start.",
  Mount: "A runtime server is ready. The data is synced next; without a sync, the cache is measured.",
  Syncing: "The data of the source is copied into the volume.",
  SyncFailed:
    "The sync failed. It is tried again when the source, the destination or the keys change, or when noSync is set.",
  PartialReady: "The cache is measured. Not all runtime servers are ready yet.",
  Ready: "All runtime servers are ready, and jobs can mount the claim.",
};

export function phaseText(phase: SampleSet["status"]["phase"]): string {
  return PHASES[phase];
}

const REMOVAL: Readonly<Record<NonNullable<SampleSet["status"]["removal"]>, string>> = {
  nodeLabels: "the labels of the nodes are removed",
  runtime: "the runtime servers are deleted",
  pods: "pods of the set must end, and pods of jobs that name its claim must be deleted",
  service: "the Service and the token Secret are deleted",
  claim: "the claim is deleted",
  volume: "the volume is deleted",
  gone: "nothing is left in the cluster; the data remains in the storage",
};

/** Say what the removal of a deleted set waits for. */
export function removalText(removal: SampleSet["status"]["removal"]): string {
  return removal === null ? "The removal has not begun yet." : `The removal: ${REMOVAL[removal]}.`;
}

/** The fields of the native status that the uniform status does not have, under the names that people use. */
const CACHE_FIELDS = [
  ["totalFiles", "Files"],
  ["diskSize", "Size of the nodes' disks"],
  ["diskUsed", "Used of these disks"],
  ["diskAvail", "Available on these disks"],
  ["diskUsageRate", "Usage of these disks"],
  ["errorMassage", "Errors of the servers"],
] as const;

/** Return the figures of the servers that are known. */
export function cacheFacts(nativeStatus: SampleSet["nativeStatus"]): [string, string][] {
  const status = nativeStatus.cacheStatus;
  if (typeof status !== "object" || status === null) return [];
  const figures = status as Readonly<Record<string, unknown>>;
  return CACHE_FIELDS.flatMap(([field, title]) => {
    const value = figures[field];
    return typeof value === "string" && value !== "" ? [[title, value] as [string, string]] : [];
  });
}

/** Return the name of the set's own sync at the servers; null if none has been posted. */
export function syncName(nativeStatus: SampleSet["nativeStatus"]): string | null {
  const names = nativeStatus.jobsName as { syncJobName?: unknown } | undefined;
  return typeof names?.syncJobName === "string" ? names.syncJobName : null;
}
