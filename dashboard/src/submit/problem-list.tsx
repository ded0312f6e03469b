import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import { Button } from "react-aria-components";
import type { TextProblem } from "./documents";

const LOOKS = {
  error: ["failed", CircleAlert, "Error"],
  warning: ["waiting", TriangleAlert, "Warning"],
  info: ["running", Info, "Note"],
} as const;

interface ProblemListProps {
  problems: readonly TextProblem[];
  /** Whether the problems are those of the text as it is now. */
  isChecked: boolean;
  isEmpty: boolean;
  /** Whether the cluster has checked the text, too. */
  hasCluster: boolean;
  onReveal: (offset: number) => void;
}

/** What is wrong with the text, line by line. */
export function ProblemList({ problems, isChecked, isEmpty, hasCluster, onReveal }: ProblemListProps) {
  const isValid = isChecked && !isEmpty && problems.length === 0;
  return (
    <section aria-labelledby="problems" className="problems">
      <h2 id="problems">Checks</h2>
      <p role="status" className={isValid ? "badge tone-succeeded" : "secondary"}>
        {isValid && <CircleCheck aria-hidden size={14} />} {summary(problems.length, isChecked, isEmpty, hasCluster)}
      </p>
      <ul>
        {problems.map((problem) => {
          const [tone, Icon, word] = LOOKS[problem.severity];
          const { place } = problem;
          return (
            <li key={`${place?.from} ${problem.field} ${problem.code} ${problem.message}`}>
              <span className={`badge tone-${tone}`}>
                <Icon aria-hidden size={14} /> {word}
              </span>
              {place !== null && (
                <Button className="link-button" onPress={() => onReveal(place.from)}>
                  Line {place.line}
                </Button>
              )}
              <span>
                {problem.field !== "" && <code>{problem.field}</code>} {problem.message}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function summary(count: number, isChecked: boolean, isEmpty: boolean, hasCluster: boolean): string {
  if (isEmpty) return "There is no manifest yet.";
  if (!isChecked) return "Checking…";
  if (count > 0) return count === 1 ? "1 problem." : `${count} problems.`;
  return hasCluster
    ? "The gateway and the cluster accept it."
    : "The gateway accepts it. The preview also asks the cluster.";
}
