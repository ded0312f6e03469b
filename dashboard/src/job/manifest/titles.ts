/** The name that an object of the cluster has in the list of objects: `Pod train-worker-0`. */
export function titleOf(object: Readonly<Record<string, unknown>>): string {
  const metadata = object.metadata as { name?: unknown } | undefined;
  return [object.kind, metadata?.name].filter((part) => typeof part === "string").join(" ") || "object";
}
