import { stringify } from "yaml";

/** Return YAML as `kubectl get -o yaml` writes it: texts of several lines as blocks, long lines unbroken, no aliases. */
export function yamlOf(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, version: "1.1" });
}

/** An object of the API whose manifest can be submitted again. */
interface Submitted {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  labels: object;
  annotations: object;
  spec: object;
}

/** Return the manifest of an object, with its defaults filled in. Submitting it creates an object like this one. */
export function manifestOf({ apiVersion, kind, namespace, name, labels, annotations, spec }: Submitted): object {
  const metadata = {
    name,
    namespace,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
  return { apiVersion, kind, metadata, spec };
}
