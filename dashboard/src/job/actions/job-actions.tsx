import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { bodyOf } from "../../api/client";
import type { Job } from "../../api/types";
import { usePage } from "../../page-context";
import { hashOf } from "../../routing/location";
import { useChangeRefusal } from "../../session/caller";
import { GuardedButton } from "../../ui/guarded-button";
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
  const refusal = useChangeRefusal(job.namespace);
  const reasonOf = (action: Action) =>
    refusal ?? permissions[action] ?? (etag === null ? "The job is being read." : null);
  return (
    <div className="actions">
      {ACTIONS.map((action) => {
        const { title, Icon, isDangerous } = LOOKS[action];
        return (
          <GuardedButton
            key={action}
            className={isDangerous ? "button danger" : "button"}
            refusal={reasonOf(action)}
            onPress={() => {
              setDone(null);
              if (etag !== null) setOpen({ action, seen: { job, etag } });
            }}
          >
            <Icon aria-hidden size={14} />
            {title}
          </GuardedButton>
        );
      })}
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
