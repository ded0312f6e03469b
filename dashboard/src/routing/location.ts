/**
 * The view that the page shows, as the fragment of its address: `#/jobs?phase=Running`.
 *
 * The fragment never reaches the gateway, so the page needs no route of the server and works below any prefix.
 */

export interface Location {
  /** The decoded segments of the path: `["jobs", "<uid>"]`. */
  path: readonly string[];
  query: URLSearchParams;
}

export function parseHash(hash: string): Location {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

export function hashOf(path: readonly string[], query?: URLSearchParams | Record<string, string>): string {
  const text = new URLSearchParams(query).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
