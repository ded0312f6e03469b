/** Actions on several jobs at once. Pure, except for `actOnEach`, which sends the requests. */
import type { ApiClient } from "../api/client";
import type { Caller, Job, JobSummary } from "../api/types";
import { isOutdated } from "../job/actions/outcome";
import { type Action, commonRefusals } from "../job/actions/permitted";
import { act, newKey, readSeen } from "../job/actions/requests";
import { changeRefusal } from "../session/caller";

export const SEVERAL_ACTIONS = ["cancel", "retry", "delete"] as const;
export type SeveralAction = Action & (typeof SEVERAL_ACTIONS)[number];

/** What became of one job: the job after the action, or why nothing was done. */
export type Outcome = { job: Job } | { refusal: string };

/** How many jobs are changed at once. */
const PARALLEL = 4;
/** How often an action is repeated for a job that changes at the same time, such as one whose pods start. */
const ATTEMPTS = 5;

/** Say why the action cannot be carried out on a job; null if it can. */
export function refusalOf(
  action: SeveralAction,
  job: Pick<JobSummary, "namespace" | "deletedAt" | "status">,
  caller: Caller | undefined,
): string | null {
  return changeRefusal(caller, job.namespace) ?? commonRefusals(job)[action];
}

/** Carry out the action on each job, and report each outcome when it is known. */
export async function actOnEach(
  client: ApiClient,
  action: SeveralAction,
  uids: readonly string[],
  reason: string,
  onOutcome: (uid: string, outcome: Outcome) => void,
): Promise<void> {
  const waiting = [...uids];
  const work = async () => {
    for (let uid = waiting.shift(); uid !== undefined; uid = waiting.shift()) {
      onOutcome(uid, await actOn(client, action, uid, reason));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}

async function actOn(client: ApiClient, action: SeveralAction, uid: string, reason: string): Promise<Outcome> {
  const key = newKey();
  for (let attempt = 1; ; attempt += 1) {
    try {
      const seen = await readSeen(client, uid);
      const refusal = commonRefusals(seen.job)[action];
      if (refusal !== null) return { refusal };
      return { job: await act(client, action, seen, { reason, name: "", sizes: {} }, key) };
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      if (!isOutdated(cause) || attempt === ATTEMPTS) return { refusal: cause.message };
    }
  }
}
