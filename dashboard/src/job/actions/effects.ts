import type { Job } from "../../api/types";
import { hasEnded } from "../names";
import type { Action } from "./permitted";

/** What the user enters into the dialog of an action. */
export interface ActionInput {
  /** A reason for the history of the job; empty if there is none. */
  reason: string;
  /** The name of the new job of a retry; empty if the gateway chooses it. */
  name: string;
  /** The wanted number of replicas by task. */
  sizes: Readonly<Record<string, number>>;
}

/** Say what an action does to a job, one sentence for each effect. */
export function effectsOf(action: Action, job: Job, input: ActionInput): string[] {
  switch (action) {
    case "scale":
      return scaleEffects(job, input.sizes);
    case "pause":
      return [
        ...stopEffects("Pause", job),
        succeededEffect(job),
        "Resume starts the replicas that have not ended again.",
      ].filter(Boolean);
    case "resume":
      return resumeEffects(job);
    case "cancel":
      return [
        ...stopEffects("Cancel", job),
        hasEnded(job)
          ? `The job stays ${job.status.phase}, as it has ended.`
          : "The job ends as Cancelled, which cannot be undone.",
        cleanUpEffect(job),
        "Its record, its history and its stored logs stay readable.",
      ];
    case "retry":
      return retryEffects(job, input.name);
    case "delete":
      return deleteEffects(job);
  }
}

/** Say which pods are stopped, and which replicas do not start. */
function stopEffects(action: string, job: Job): string[] {
  const { running, pending, unknown, creating } = job.status.aggregate;
  const live = running + pending + unknown;
  const stopped =
    live === 0 ? `${action} stops no pods: none has a node.` : `${action} stops ${plural(live, "pod")} gracefully.`;
  return creating === 0 ? [stopped] : [stopped, `Replicas without a node do not start: ${creating}.`];
}

function succeededEffect(job: Job): string {
  const { succeeded } = job.status.aggregate;
  return succeeded === 0 ? "" : `Replicas that have succeeded do not run again: ${succeeded}.`;
}

function resumeEffects(job: Job): string[] {
  const { deleted } = job.status.aggregate;
  const first =
    job.status.phase === "Paused" && deleted > 0
      ? `Resume starts ${plural(deleted, "replica")} again, each in a new attempt.`
      : "Resume starts the replicas that the pause has stopped again, each in a new attempt.";
  return [first, succeededEffect(job)].filter(Boolean);
}

function cleanUpEffect(job: Job): string {
  if (cleanUpPolicy(job) === "All") return "Its clean-up policy is All: its ended pods are deleted.";
  return "Its ended pods stay until it is deleted, unless the installation cleans them up.";
}

function cleanUpPolicy(job: Job): unknown {
  return job.spec.cleanUpPolicy ?? job.spec.cleanPodPolicy;
}

function retryEffects(job: Job, name: string): string[] {
  const what = name === "" ? "a name that begins with that of this job" : `the name ${name}`;
  const size = {
    DIJob: "It starts with the present numbers of replicas.",
    TrainingJob: "It starts with the least number of trainers.",
  } as Readonly<Record<string, string>>;
  return [
    `Retry submits the manifest of this job again, as a new job with ${what}.`,
    size[job.kind] ?? "",
    "This job, its history and its logs do not change.",
  ].filter(Boolean);
}

function deleteEffects(job: Job): string[] {
  const objects = "its pods, Services and ConfigMaps from the cluster";
  const first = hasEnded(job)
    ? [`Delete removes ${objects}.`]
    : [...stopEffects("Delete cancels the job: it", job), `Delete removes ${objects}.`];
  return [
    ...first,
    "Its record, its history and its stored logs stay readable; lists omit it.",
    "This cannot be undone.",
  ];
}

function scaleEffects(job: Job, sizes: Readonly<Record<string, number>>): string[] {
  const changes = Object.entries(job.scaling).flatMap(([task, { replicas }]) => {
    const wanted = sizes[task] ?? replicas;
    if (wanted > replicas)
      return [`Scale adds ${plural(wanted - replicas, "replica")} to ${task}: ${ranks(replicas, wanted)}.`];
    if (wanted < replicas) {
      return [`Scale stops ${plural(replicas - wanted, "replica")} of ${task} gracefully: ${ranks(wanted, replicas)}.`];
    }
    return [];
  });
  if (changes.length === 0) return ["These are the present sizes: nothing changes."];
  return [...changes, "The other replicas go on without a restart."];
}

/** Name the ranks from `start` up to, and without, `end`. */
function ranks(start: number, end: number): string {
  return end - start === 1 ? `rank ${start}` : `ranks ${start} to ${end - 1}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
