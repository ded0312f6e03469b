import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Job, Replica } from "../../api/types";
import { type Store, useStore } from "../../live/store";
import { usePage } from "../../page-context";
import { useRefetchOnChange } from "../../ui/refetch";
import { hasEnded, replicaName } from "../names";
import { LogFollower, type LogState } from "./follower";
import { MOST_LINES } from "./ring";
import { type Matcher, Matches } from "./search";
import { keyOf, type Target } from "./selection";

/** The most replicas of which the gateway merges the logs. */
const MOST_MERGED = 64;
const UPDATE_EVERY = 250;

/**
 * Follow a log while the component is shown. Another target, and another user, begin a new one; the end of the job does
 * not, because the log that is followed has all its lines.
 */
export function useLog(
  job: Job,
  target: Target,
  replicas: readonly Replica[],
): { follower: LogFollower; state: LogState } {
  const { uid } = job;
  const { api, jobChanges } = usePage();
  const user = useSyncExternalStore(api.session.subscribe, () => api.session.users);
  const key = keyOf(target);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the target; a user is a new beginning
  const follower = useMemo(() => {
    const share = Math.floor(MOST_LINES / Math.min(MOST_MERGED, Math.max(1, replicas.length)));
    // One line more than the page keeps shows that the log has earlier ones.
    return new LogFollower(api.transport, {
      uid,
      target,
      tailLines: target.kind === "merged" ? share : MOST_LINES + 1,
      isGrowing: !hasEnded(job) || job.status.stillRunning > 0,
    });
  }, [api, uid, key, user]);
  useEffect(() => {
    const merged = replicas.filter(({ task }) => target.task === null || target.task === task);
    follower.replicas = merged.map(({ task, rank }) => replicaName(task, rank));
  }, [follower, replicas, target.task]);
  useEffect(() => {
    follower.start();
    return () => follower.stop();
  }, [follower]);
  useRefetchOnChange(jobChanges, () => follower.retry(), uid);
  return { follower, state: useStore(follower.state) };
}

/** Return the numbers of the lines that match, ascending; null until there are lines to search. They follow the log. */
export function useMatches({ ring, version }: LogFollower, matcher: Matcher | null): readonly number[] | null {
  const [numbers, setNumbers] = useState<readonly number[] | null>(null);
  useEffect(() => {
    const matches = new Matches(matcher);
    return following(version, () => {
      const hasMore = matches.scan(ring);
      setNumbers(ring.end === 0 ? null : matches.numbers);
      return hasMore;
    });
  }, [ring, version, matcher]);
  return numbers;
}

/** Return how many lines the page keeps, and how many it has dropped. */
export function useLineCounts({ ring, version }: LogFollower): { kept: number; dropped: number } {
  const [counts, setCounts] = useState({ kept: ring.length, dropped: ring.first });
  useEffect(
    () =>
      following(version, () => {
        setCounts({ kept: ring.length, dropped: ring.first });
        return false;
      }),
    [ring, version],
  );
  return counts;
}

/**
 * Call `update` now and after each change, but not in each frame: numbers are read, not watched. It returns whether it
 * must be called again at once. Return what ends it.
 */
function following(version: Store<number>, update: () => boolean): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let updatedAt = 0;
  const updateAfter = (milliseconds: number) => {
    timer ??= setTimeout(run, milliseconds);
  };
  const run = () => {
    timer = undefined;
    updatedAt = performance.now();
    if (update()) updateAfter(0);
  };
  run();
  const unsubscribe = version.subscribe(() => updateAfter(Math.max(0, updatedAt + UPDATE_EVERY - performance.now())));
  return () => {
    unsubscribe();
    clearTimeout(timer);
  };
}
