import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { bodyOf } from "../../api/client";
import type { Job } from "../../api/types";
import { usePage } from "../../page-context";
import { hashOf } from "../../routing/location";
import { ActionDialog } from "./action-dialog";
import "./actions.css";
import { LOOKS } from "./looks";
import { confirmation } from "./outcome";
import { ACTIONS, type Action, permitted } from "./permitted";
import type { SeenJob } from "./requests";

interface Open {
  action: Action;
  /** The version that the user saw when the dialog was opened. */
  seen: SeenJob;
}

/** The actions on a job. Each opens a dialog that says what it does before it is carried out. */
export function JobActions({ job, etag }: { job: Job; etag: string | null }) {
  const supportsPause = useSupportsPause(job);
  const permissions = permitted(job, supportsPause);
  const [open, setOpen] = useState<Open | null>(null);
  const [done, setDone] = useState<{ action: Action; job: Job } | null>(null);
  const reasonOf = (action: Action) => permissions[action] ?? (etag === null ? "The job is being read." : null);
  return (
    <div className="actions">
      {ACTIONS.map((action) => (
        <ActionButton
          key={action}
          action={action}
          reason={reasonOf(action)}
          onPress={() => {
            setDone(null);
            if (etag !== null) setOpen({ action, seen: { job, etag } });
          }}
        />
      ))}
      <span className="actions-done" role="status">
        {done !== null && <Done {...done} />}
      </span>
      {open !== null && (
        <ActionDialog
          action={open.action}
          seen={open.seen}
          supportsPause={supportsPause}
          onClose={() => setOpen(null)}
          onDone={(changed) => {
            setOpen(null);
            setDone({ action: open.action, job: changed });
          }}
        />
      )}
    </div>
  );
}

interface ActionButtonProps {
  action: Action;
  /** Why the action is not permitted; null if it is. */
  reason: string | null;
  onPress: () => void;
}

/** The button of an action. It keeps the focus when it is disabled, so that everybody can learn the reason. */
function ActionButton({ action, reason, onPress }: ActionButtonProps) {
  const { title, Icon, isDangerous } = LOOKS[action];
  const description = useId();
  return (
    <>
      <button
        type="button"
        className={isDangerous ? "button danger" : "button"}
        aria-disabled={reason !== null}
        aria-describedby={reason === null ? undefined : description}
        title={reason ?? undefined}
        onClick={() => reason === null && onPress()}
      >
        <Icon aria-hidden size={14} />
        {title}
      </button>
      {reason !== null && (
        <span id={description} className="visually-hidden">
          {reason}
        </span>
      )}
    </>
  );
}

function Done({ action, job }: { action: Action; job: Job }) {
  return (
    <>
      {confirmation(action)} {action === "retry" && <a href={hashOf(["jobs", job.uid])}>{job.name}</a>}
    </>
  );
}

/** Return whether jobs of this kind can be paused; false until the kinds have arrived. */
function useSupportsPause(job: Job): boolean {
  const { client } = usePage().api;
  const { data } = useQuery({
    queryKey: ["kinds"],
    queryFn: async ({ signal }) => bodyOf(await client.GET("/api/v1/kinds", { signal })).items,
  });
  return data?.find((kind) => kind.kind === job.kind)?.supportsPause ?? false;
}
