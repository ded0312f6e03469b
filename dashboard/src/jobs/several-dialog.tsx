import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Button, Heading, Input, Label, Text, TextField } from "react-aria-components";
import type { Caller, JobSummary } from "../api/types";
import { LOOKS } from "../job/actions/looks";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { Window } from "../ui/window";
import { actOnEach, type Outcome, refusalOf, type SeveralAction } from "./several";

interface SeveralDialogProps {
  action: SeveralAction;
  jobs: readonly JobSummary[];
  caller: Caller | undefined;
  onClose: () => void;
  /** Called when the user closes the dialog after the action was carried out. */
  onDone: () => void;
}

const EFFECTS: Readonly<Record<SeveralAction, string>> = {
  cancel: "Cancel stops their pods gracefully. Those that have not ended end as Cancelled, which cannot be undone.",
  retry: "Retry submits the manifest of each job again, as a new job with a name of its own.",
  delete: "Delete cancels those that have not ended, and removes their objects from the cluster. It cannot be undone.",
};

/** Carries out an action on several jobs, and says what became of each. */
export function SeveralDialog(props: SeveralDialogProps) {
  return (
    <Window onClose={props.onClose} hasInput>
      <SeveralForm {...props} />
    </Window>
  );
}

function SeveralForm({ action, jobs: first, caller, onClose, onDone }: SeveralDialogProps) {
  const { client } = usePage().api;
  const { title, isDangerous } = LOOKS[action];
  // The jobs of the dialog are those that the user saw when it was opened.
  const [jobs] = useState(() => first.map((job) => ({ job, refusal: refusalOf(action, job, caller) })));
  const [reason, setReason] = useState("");
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map());
  const chosen = jobs.filter(({ refusal }) => refusal === null).map(({ job }) => job.uid);
  const mutation = useMutation({
    mutationFn: () =>
      actOnEach(client, action, chosen, reason, (uid, outcome) =>
        setOutcomes((present) => new Map(present).set(uid, outcome)),
      ),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (mutation.isIdle) mutation.mutate();
  };
  const count = chosen.length === 1 ? "1 job" : `${chosen.length} jobs`;
  return (
    <form className="form" onSubmit={submit}>
      <Heading slot="title">
        {title} {count}
      </Heading>
      <p>{EFFECTS[action]}</p>
      <ul className="several-jobs">
        {jobs.map(({ job, refusal }) => (
          <li key={job.uid}>
            <strong>{job.name}</strong> <span className="secondary">{job.namespace}</span>{" "}
            <Result refusal={refusal} outcome={outcomes.get(job.uid)} phase={job.status.phase} />
          </li>
        ))}
      </ul>
      {action !== "retry" && mutation.isIdle && (
        <TextField value={reason} onChange={setReason} maxLength={1024} autoFocus>
          <Label>Reason</Label>
          <Input />
          <Text slot="description">Optional. The history of each job shows it.</Text>
        </TextField>
      )}
      <p role="status">{mutation.isIdle ? "" : `${outcomes.size} of ${count} answered.`}</p>
      <div className="dialog-buttons">
        <Button className="button" onPress={mutation.isSuccess ? onDone : onClose}>
          Close
        </Button>
        {!mutation.isSuccess && (
          <Button
            type="submit"
            className={isDangerous ? "button danger" : "button primary"}
            isDisabled={mutation.isPending || chosen.length === 0}
          >
            {mutation.isPending ? "Sending…" : `${title} ${count}`}
          </Button>
        )}
      </div>
    </form>
  );
}

function Result({ refusal, outcome, phase }: { refusal: string | null; outcome: Outcome | undefined; phase: string }) {
  if (refusal !== null) return <span className="secondary">left out: {refusal}</span>;
  if (outcome === undefined) return <span>{phase}</span>;
  if ("refusal" in outcome) return <span className="tone-failed">not done: {outcome.refusal}</span>;
  return (
    <span className="tone-succeeded">
      requested: <a href={hashOf(["jobs", outcome.job.uid])}>{outcome.job.name}</a>
    </span>
  );
}
