import { useMemo, useSyncExternalStore } from "react";
import { hashOf, type Location, parseHash } from "./location";

function subscribe(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
}

export function useLocation(): Location {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return useMemo(() => parseHash(hash), [hash]);
}

export function navigate(path: readonly string[], query?: URLSearchParams | Record<string, string>): void {
  window.location.hash = hashOf(path, query);
  announce();
}

/** Change the query of the present view, so that the browser's Back returns to the present one. */
export function pushQuery(query: URLSearchParams): void {
  const { path } = parseHash(window.location.hash);
  if (hashOf(path, query) !== window.location.hash) navigate(path, query);
}

/** Change the query of the present view without a new entry in the browser's history. */
export function replaceQuery(query: URLSearchParams): void {
  const { path } = parseHash(window.location.hash);
  window.history.replaceState(null, "", hashOf(path, query));
  announce();
}

/**
 * Show the present address at once.
 *
 * The browser tells of another fragment later, and of a replaced one never. Until then, a second change, such as the
 * press on a chip that takes the focus from a filter, would begin from the former address and undo the first.
 */
function announce(): void {
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}
