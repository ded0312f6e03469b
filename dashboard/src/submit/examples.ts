/** The examples of the repository, which the page contains, so that a user can start from one. */

export interface Example {
  /** Such as `generic-job/flaky`. */
  id: string;
  kind: string;
  name: string;
  /** The first sentence of the comment with which the file begins. */
  description: string;
  text: string;
}

/** A Secret and the objects of Kueue are no manifests of jobgate. */
const FILES: Readonly<Record<string, string>> = import.meta.glob(
  ["../../../examples/*/*.yaml", "!../../../examples/queues/queue.yaml", "!../../../examples/sample-set/secret.yaml"],
  { query: "?raw", import: "default", eager: true },
);

export const EXAMPLES: readonly Example[] = Object.entries(FILES).map(([path, text]) => exampleOf(path, text));

export function exampleOf(path: string, text: string): Example {
  const [directory = "", file = ""] = path.split("/").slice(-2);
  const name = file.replace(/\.yaml$/, "");
  const comment: string[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("#")) break;
    comment.push(line.replace(/^#\s?/, ""));
  }
  const [sentence = ""] = /^.*?[.:](?=\s|$)/.exec(comment.join(" ")) ?? [];
  return {
    id: `${directory}/${name}`,
    kind: /^kind: (\w+)/m.exec(text)?.[1] ?? "",
    name,
    description: sentence.replace(/:$/, "."),
    text,
  };
}

/** Return the examples by kind, in the order of the files. */
export function byKind(examples: readonly Example[]): [string, Example[]][] {
  const kinds = [...new Set(examples.map((example) => example.kind))];
  return kinds.map((kind) => [kind, examples.filter((example) => example.kind === kind)]);
}
