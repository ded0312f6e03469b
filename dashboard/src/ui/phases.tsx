import {
  Ban,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CirclePause,
  CirclePlay,
  CircleX,
  Clock,
  LoaderCircle,
  type LucideIcon,
  RefreshCw,
  TimerOff,
} from "lucide-react";

/** The colours of states. Each also has an icon and a text, because colour alone does not reach every reader. */
export type Tone = "neutral" | "waiting" | "running" | "changing" | "succeeded" | "failed" | "unknown";

const PHASES: Readonly<Record<string, readonly [Tone, LucideIcon]>> = {
  Queued: ["waiting", Clock],
  Creating: ["waiting", CircleDashed],
  Pending: ["waiting", Clock],
  Running: ["running", CirclePlay],
  Scaling: ["changing", RefreshCw],
  Restarting: ["changing", RefreshCw],
  Resuming: ["changing", RefreshCw],
  Paused: ["neutral", CirclePause],
  Succeeded: ["succeeded", CircleCheck],
  Failed: ["failed", CircleX],
  TimedOut: ["failed", TimerOff],
  Cancelled: ["neutral", Ban],
  Unknown: ["unknown", CircleHelp],
  Deleted: ["neutral", Ban],
  Bound: ["waiting", CircleDashed],
  Mount: ["waiting", LoaderCircle],
  Syncing: ["running", RefreshCw],
  SyncFailed: ["failed", CircleX],
  PartialReady: ["changing", CircleAlert],
  Ready: ["succeeded", CircleCheck],
};

/** Return the tone of a phase of any resource, or of a replica. A phase that this page does not know is neutral. */
export function toneOf(phase: string): Tone {
  return PHASES[phase]?.[0] ?? "neutral";
}

export function PhaseBadge({ phase }: { phase: string }) {
  const Icon = PHASES[phase]?.[1] ?? CircleDashed;
  return (
    <span className={`badge tone-${toneOf(phase)}`}>
      <Icon aria-hidden size={14} />
      {phase === "" ? "New" : phase}
    </span>
  );
}
