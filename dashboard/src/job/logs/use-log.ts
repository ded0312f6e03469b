import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useStore } from "../../live/store";
import { usePage } from "../../page-context";
import { useRefetchOnChange } from "../../ui/refetch";
import { LogFollower, type LogState } from "./follower";
import { type LineRing, MOST_LINES } from "./ring";
import { type Matcher, Matches } from "./search";
import { keyOf, type Target } from "./selection";

/** The most replicas of which the gateway merges the logs. */
const MOST_MERGED = 64;

/** Follow a log while the component is shown. Another target, and another user, begin a new one. */
export function useLog(uid: string, target: Target, replicas: number): { follower: LogFollower; state: LogState } {
  const { api, jobChanges } = usePage();
  const user = useSyncExternalStore(api.session.subscribe, () => api.session.users);
  const key = keyOf(target);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the target; a user is a new beginning
  const follower = useMemo(() => {
    const share = Math.floor(MOST_LINES / Math.min(MOST_MERGED, Math.max(1, replicas)));
    // One line more than the page keeps shows that the log has earlier ones.
    return new LogFollower(api.transport, {
      uid,
      target,
      tailLines: target.kind === "merged" ? share : MOST_LINES + 1,
    });
  }, [api, uid, key, user]);
  useEffect(() => {
    follower.start();
    return () => follower.stop();
  }, [follower]);
  useRefetchOnChange(jobChanges, () => follower.retry(), uid);
  return { follower, state: useStore(follower.state) };
}

/** Return the numbers of the lines that match, ascending. `version` says that the ring has changed. */
export function useMatches(ring: LineRing, version: number, matcher: Matcher | null): readonly number[] {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new ring begins a new search
  const matches = useMemo(() => (matcher === null ? null : new Matches(matcher)), [matcher, ring]);
  const [numbers, setNumbers] = useState<readonly number[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: see `version`
  useEffect(() => {
    if (matches === null) {
      setNumbers([]);
      return;
    }
    let frame = 0;
    const next = () => {
      const hasMore = matches.scan(ring);
      setNumbers([...matches.numbers]);
      if (hasMore) frame = requestAnimationFrame(next);
    };
    next();
    return () => cancelAnimationFrame(frame);
  }, [matches, ring, version]);
  return numbers;
}
