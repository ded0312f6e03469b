import { useMutation, useQueryClient } from "@tanstack/react-query";
import { TriangleAlert } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button, Heading } from "react-aria-components";
import type { Job } from "../../api/types";
import { usePage } from "../../page-context";
import { ErrorNote } from "../../ui/errors";
import { Window } from "../../ui/window";
import { ActionFields } from "./action-fields";
import { type ActionInput, effectsOf } from "./effects";
import { LOOKS } from "./looks";
import { changeText, isOutdated, otherJobText, shown } from "./outcome";
import { type Action, permitted } from "./permitted";
import { act, newKey, readSeen, type SeenJob } from "./requests";
import { changedSizes, presentSizes, sizeError } from "./sizes";

interface ActionDialogProps {
  action: Action;
  /** The job as the user saw it. The action applies to this version only. */
  seen: SeenJob;
  supportsPause: boolean;
  onClose: () => void;
  /** Called with the changed job, or with the new job of a retry. */
  onDone: (job: Job) => void;
}

/** The dialog of an action: what it does, what it needs, and what prevents it. */
export function ActionDialog(props: ActionDialogProps) {
  return (
    <Window onClose={props.onClose} hasInput>
      <ActionForm {...props} />
    </Window>
  );
}

function ActionForm({ action, seen: first, supportsPause, onClose, onDone }: ActionDialogProps) {
  const { title, isDangerous } = LOOKS[action];
  const [input, setInput] = useState<ActionInput>(() => ({ reason: "", name: "", sizes: presentSizes(first.job) }));
  const { seen, change, mutation } = useAction(action, first, input, onDone);
  const refusal = permitted(seen.job, supportsPause)[action];
  const isValid = action !== "scale" || hasValidSizes(seen.job, input.sizes);
  const isComplete = action !== "scale" || Object.keys(changedSizes(seen.job, input.sizes)).length > 0;
  const canSubmit = refusal === null && isValid && isComplete && !mutation.isPending;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canSubmit) mutation.mutate();
  };
  return (
    <form className="form" onSubmit={submit}>
      <Heading slot="title">
        {title} {seen.job.name}
      </Heading>
      {change !== null && (
        <div className="note tone-waiting" role="alert">
          <TriangleAlert aria-hidden size={16} />
          <p>{change}</p>
        </div>
      )}
      <ActionFields action={action} job={seen.job} input={input} onChange={setInput} />
      {refusal !== null && <p>{refusal}</p>}
      {refusal === null && isValid && <Effects effects={effectsOf(action, seen.job, input)} />}
      {mutation.error !== null && !isOutdated(mutation.error) && <ErrorNote error={shown(mutation.error)} />}
      <div className="dialog-buttons">
        {/* `Cancel` would be the name of an action. */}
        <Button className="button" onPress={onClose}>
          Close
        </Button>
        <Button type="submit" className={isDangerous ? "button danger" : "button primary"} isDisabled={!canSubmit}>
          {mutation.isPending ? "Sending…" : `${title} the job`}
        </Button>
      </div>
    </form>
  );
}

function Effects({ effects }: { effects: readonly string[] }) {
  return (
    <ul className="effects">
      {effects.map((effect) => (
        <li key={effect}>{effect}</li>
      ))}
    </ul>
  );
}

/** Carry out an action on the version that the user sees. If it has changed, the user sees the new one. */
function useAction(action: Action, first: SeenJob, input: ActionInput, onDone: (job: Job) => void) {
  const { client } = usePage().api;
  const queries = useQueryClient();
  const [seen, setSeen] = useState(first);
  const [change, setChange] = useState<string | null>(null);
  const [key] = useState(newKey);
  const mutation = useMutation({
    mutationFn: async () => {
      try {
        return await act(client, action, seen, input, key);
      } catch (error) {
        if (isOutdated(error as Error)) {
          const now = await readSeen(client, seen.job.uid);
          setChange(now.etag === seen.etag ? otherJobText(seen.job) : changeText(seen.job, now.job));
          setSeen(now);
        }
        throw error;
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["job", first.job.uid] }),
    onSuccess: onDone,
  });
  return { seen, change, mutation };
}

function hasValidSizes(job: Job, sizes: ActionInput["sizes"]): boolean {
  return Object.entries(sizes).every(([task, size]) => sizeError(job, task, size) === "");
}
