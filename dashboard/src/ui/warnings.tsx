import { TriangleAlert } from "lucide-react";
import { useId } from "react";

interface Warning {
  source: "jobgate" | "cluster";
  task: string | null;
  /** The JSON pointer of a field of the manifest, or empty. */
  pointer: string;
  message: string;
}

/** What the author of a manifest should know about it, as jobgate and the cluster say. Nothing without warnings. */
export function Warnings({ warnings }: { warnings: readonly Warning[] }) {
  const title = useId();
  if (warnings.length === 0) return null;
  return (
    <section className="note tone-waiting warnings" aria-labelledby={title}>
      <TriangleAlert aria-hidden size={16} />
      <div>
        <h2 id={title}>{warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`}</h2>
        <ul>
          {warnings.map((warning) => (
            <li key={`${warning.source} ${warning.task} ${warning.pointer} ${warning.message}`}>
              {warning.message} <span className="secondary">{placeOf(warning)}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

function placeOf({ source, task, pointer }: Warning): string {
  const by = source === "cluster" ? "the cluster" : "jobgate";
  return `(${[by, task === null ? "" : `task ${task}`, pointer].filter((part) => part !== "").join(", ")})`;
}
