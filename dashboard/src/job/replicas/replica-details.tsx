import { useEffect, useRef } from "react";
import type { Attempt, Container, Job, Replica } from "../../api/types";
import { hashOf } from "../../routing/location";
import { type DataColumn, DataTable } from "../../ui/data-table";
import { PhaseBadge } from "../../ui/phases";
import { Length, When } from "../../ui/when";
import { exitText, signalName } from "../names";
import { attemptText } from "../timeline/rows";
import { LogTail } from "./log-tail";

interface ReplicaDetailsProps {
  job: Job;
  replica: Replica;
  /** The attempt to show first; null for the newest. */
  attempt: number | null;
}

/** A replica with its attempts, the newest first. */
export function ReplicaDetails({ job, replica, attempt }: ReplicaDetailsProps) {
  const { phase, name, node, podIP, restartCount, restartsInPlace, disruptions, retryAt, leaving, attempts } = replica;
  const chosen = attempt ?? attempts.at(-1)?.number;
  return (
    <>
      <p className="job-replica-summary">
        <PhaseBadge phase={phase} />
        {leaving && <span>leaves after a scale down</span>}
        {retryAt !== null && phase === "Creating" && <NextAttempt at={retryAt} />}
      </p>
      <dl className="job-facts">
        <Fact name="Pod" value={name} />
        <Fact name="Node" value={node} />
        <Fact name="Address" value={podIP} />
        <Fact name="Restarts" value={String(restartCount)} />
        {restartsInPlace > 0 && <Fact name="Restarts in place" value={String(restartsInPlace)} />}
        <Fact name="Disruptions" value={String(disruptions)} />
      </dl>
      {attempts.length === 0 && <p className="secondary">No pod of this replica has been created yet.</p>}
      {attempts.toReversed().map((each) => (
        <AttemptSection
          key={each.number}
          job={job}
          replica={replica}
          attempt={each}
          isChosen={each.number === chosen}
          isRequested={each.number === attempt}
        />
      ))}
    </>
  );
}

function NextAttempt({ at }: { at: string }) {
  return (
    <span>
      next attempt at <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time>
    </span>
  );
}

function Fact({ name, value }: { name: string; value: string | null }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value ?? "–"}</dd>
    </div>
  );
}

interface AttemptSectionProps {
  job: Job;
  replica: Replica;
  attempt: Attempt;
  /** Whether it is shown with the end of its log. */
  isChosen: boolean;
  /** Whether the user has chosen it, so that it must be in view. */
  isRequested: boolean;
}

function AttemptSection({ job, replica, attempt, isChosen, isRequested }: AttemptSectionProps) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isRequested) section.current?.scrollIntoView({ block: "nearest" });
  }, [isRequested]);
  const place = { task: replica.task, rank: String(replica.rank), attempt: String(attempt.number) };
  const exit = exitText(attempt);
  return (
    <section ref={section} className="job-attempt" aria-label={attemptText(attempt)}>
      <h3>
        Attempt {attempt.number}
        <span className={`badge tone-${TONES[attempt.outcome ?? ""] ?? "neutral"}`}>
          {attempt.outcome ?? attempt.phase}
        </span>
      </h3>
      {(exit !== "" || attempt.message !== null) && <p>{[exit, attempt.message].filter(Boolean).join(": ")}</p>}
      <dl className="job-facts">
        <Fact name="Node" value={attempt.node} />
        <div>
          <dt>Created</dt>
          <dd>
            <When time={attempt.createdAt} />
          </dd>
        </div>
        <div>
          <dt>Started</dt>
          <dd>
            <When time={attempt.startedAt} />
          </dd>
        </div>
        <div>
          <dt>Duration</dt>
          <dd>
            <Length start={attempt.startedAt} end={attempt.finishedAt} />
          </dd>
        </div>
        <Fact name="Evidence" value={evidenceText(attempt)} />
      </dl>
      <DataTable
        caption={`Containers of attempt ${attempt.number}`}
        columns={CONTAINERS}
        rows={attempt.containers}
        keyOf={(container) => container.name}
        empty="The cluster has not reported containers of this attempt."
      />
      <LogTail uid={job.uid} replica={replica} attempt={attempt} isOpen={isChosen} />
      {attempt.podUid !== null && (
        <p>
          <a href={hashOf(["jobs", job.uid, "logs"], place)}>Log of attempt {attempt.number}</a>
        </p>
      )}
    </section>
  );
}

const TONES: Readonly<Record<string, string>> = {
  Succeeded: "succeeded",
  Failed: "failed",
  Disrupted: "unknown",
  Stopped: "neutral",
  "": "running",
};

/** Say whether the log of an attempt is stored, and if not, why. */
function evidenceText({ evidence, evidenceReason, outcome }: Attempt): string {
  if (evidence === "Captured") return "the log and the last events are stored";
  if (evidence === "Unavailable") return `unavailable: ${evidenceReason ?? "the cause is not known"}`;
  return outcome === null ? "stored when the attempt ends" : "not stored yet";
}

const CONTAINERS: readonly DataColumn<Container>[] = [
  { title: "Container", cell: ({ name, init }) => (init ? `${name} (init)` : name) },
  { title: "State", cell: ({ state, reason }) => (reason === null ? state : `${state}: ${reason}`) },
  { title: "Exit code", cell: ({ exitCode }) => exitCode ?? "–" },
  { title: "Signal", cell: ({ exitCode, signal }) => signalName(exitCode, signal) || "–" },
  { title: "Restarts", cell: ({ restartCount }) => restartCount },
  { title: "Image", className: "wrap", cell: ({ image }) => image ?? "–" },
  { title: "Message", className: "wrap", cell: ({ message }) => message ?? "" },
];
