import { X } from "lucide-react";
import { useState } from "react";
import { Button } from "react-aria-components";
import type { JobSummary } from "../api/types";
import { LOOKS } from "../job/actions/looks";
import { useCaller } from "../session/caller";
import { GuardedButton } from "../ui/guarded-button";
import { refusalOf, SEVERAL_ACTIONS, type SeveralAction } from "./several";
import { SeveralDialog } from "./several-dialog";

/** The selected jobs, and what can be done with them. */
export function SelectionBar({ jobs, onClear }: { jobs: readonly JobSummary[]; onClear: () => void }) {
  const caller = useCaller().data;
  const [action, setAction] = useState<SeveralAction | null>(null);
  const refusal = (each: SeveralAction) => {
    const refusals = jobs.map((job) => refusalOf(each, job, caller));
    return refusals.includes(null) ? null : (refusals[0] ?? null);
  };
  return (
    <section className="selection-bar" aria-label="Selected jobs">
      <span role="status">{jobs.length === 1 ? "1 job selected" : `${jobs.length} jobs selected`}</span>
      {SEVERAL_ACTIONS.map((each) => {
        const { title, Icon, isDangerous } = LOOKS[each];
        return (
          <GuardedButton
            key={each}
            className={isDangerous ? "button danger" : "button"}
            refusal={refusal(each)}
            onPress={() => setAction(each)}
          >
            <Icon aria-hidden size={14} /> {title}
          </GuardedButton>
        );
      })}
      <Button className="button" onPress={onClear}>
        <X aria-hidden size={14} /> Clear the selection
      </Button>
      {action !== null && (
        <SeveralDialog action={action} jobs={jobs} caller={caller} onClose={() => setAction(null)} onDone={onClear} />
      )}
    </section>
  );
}
