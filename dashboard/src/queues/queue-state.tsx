import { CircleAlert, CircleCheck } from "lucide-react";
import type { JobQueue } from "../api/types";

/** Whether the queue admits jobs, and otherwise why it does not. */
export function QueueState({ queue: { active, message } }: { queue: JobQueue }) {
  if (active) {
    return (
      <span className="queue-state tone-succeeded">
        <CircleCheck aria-hidden size={14} /> active
      </span>
    );
  }
  return (
    <span className="queue-state tone-failed">
      <CircleAlert aria-hidden size={14} /> <span>{message === "" ? "not active" : `not active: ${message}`}</span>
    </span>
  );
}
