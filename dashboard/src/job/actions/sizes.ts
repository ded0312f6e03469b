import type { Job } from "../../api/types";

/** Return the present numbers of replicas of the tasks that can be scaled. */
export function presentSizes(job: Job): Record<string, number> {
  return Object.fromEntries(Object.entries(job.scaling).map(([task, { replicas }]) => [task, replicas]));
}

/** Return the tasks whose wanted size differs from the present one. */
export function changedSizes(job: Job, wanted: Readonly<Record<string, number>>): Record<string, number> {
  const changed = Object.entries(wanted).filter(([task, size]) => {
    const scaling = job.scaling[task];
    return scaling !== undefined && scaling.replicas !== size;
  });
  return Object.fromEntries(changed);
}

/** Say what is wrong with a wanted size; empty if nothing. The present size is always accepted, as by the gateway. */
export function sizeError(job: Job, task: string, size: number): string {
  const scaling = job.scaling[task];
  if (scaling === undefined) return "This task cannot be scaled.";
  const { replicas, min, max } = scaling;
  if (!Number.isInteger(size)) return "Enter a number.";
  return size === replicas || (size >= min && size <= max) ? "" : `Enter a number from ${min} to ${max}.`;
}
