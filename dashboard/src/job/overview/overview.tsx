import type { ReactNode } from "react";
import type { Job } from "../../api/types";
import { hashOf } from "../../routing/location";
import { Actor } from "../../ui/actor";
import { creatorOf } from "../../ui/actors";
import { type DataColumn, DataTable } from "../../ui/data-table";
import { localTime } from "../../ui/durations";
import { AggregateBar, aggregateText } from "../../ui/progress";
import { Warnings } from "../../ui/warnings";
import { Length, When } from "../../ui/when";
import { hasEnded } from "../names";
import { Timeline } from "../timeline/timeline";
import { ExplanationPanel } from "./explanation-panel";
import { QueueSection } from "./queue-section";

export function Overview({ job }: { job: Job }) {
  return (
    <div className="job-section">
      <ExplanationPanel job={job} />
      <Warnings warnings={job.status.warnings} />
      {job.status.queue !== null && <QueueSection job={job} queue={job.status.queue} />}
      <section aria-labelledby="job-replicas">
        <h2 id="job-replicas">Replicas</h2>
        <p className="job-aggregate">
          <AggregateBar status={job.status} />
          <span>{aggregateText(job.status.aggregate)}</span>
        </p>
        <Timeline job={job} />
      </section>
      <div className="job-columns">
        <Times job={job} />
        <Pairs title="Labels" pairs={job.labels} />
        <Pairs title="Annotations" pairs={job.annotations} />
      </div>
      <section>
        <h2>Conditions</h2>
        <DataTable
          caption="Conditions"
          columns={CONDITIONS}
          rows={job.conditions}
          keyOf={(condition) => condition.type}
          empty="The job has no conditions yet."
        />
      </section>
    </div>
  );
}

function Times({ job }: { job: Job }) {
  const { createdAt, importedAt, retryOf, purgeAt, generation, status } = job;
  return (
    <section>
      <h2>Times</h2>
      <dl className="job-facts">
        <Moment name="Submitted" time={createdAt} />
        <Fact name="Submitted by">
          <Actor actor={creatorOf(job)} />
        </Fact>
        <Moment name="Started" time={status.startedAt} />
        <Moment name="Ended" time={status.finishedAt} />
        <Fact name="Duration">
          {status.startedAt === null && hasEnded(job) ? (
            "–"
          ) : (
            <Length start={status.startedAt} end={status.finishedAt} />
          )}
        </Fact>
        {purgeAt !== null && <Fact name="Kept until">{localTime(purgeAt)}</Fact>}
        <Moment name="Observed" time={status.observedAt} />
        {importedAt !== null && <Moment name="Imported" time={importedAt} />}
        <Fact name="Generation">
          {status.observedGeneration === generation
            ? generation
            : `${generation} (observed: ${status.observedGeneration})`}
        </Fact>
        {retryOf !== null && (
          <Fact name="Retry of">
            <a href={hashOf(["jobs", retryOf])}>
              <code>{retryOf}</code>
            </a>
          </Fact>
        )}
      </dl>
    </section>
  );
}

function Moment({ name, time }: { name: string; time: string | null }) {
  return (
    <Fact name={name}>
      {time === null ? (
        "–"
      ) : (
        <>
          {localTime(time)}{" "}
          <span className="secondary">
            (<When time={time} />)
          </span>
        </>
      )}
    </Fact>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Pairs({ title, pairs }: { title: string; pairs: Readonly<Record<string, string>> }) {
  const entries = Object.entries(pairs);
  return (
    <section>
      <h2>{title}</h2>
      {entries.length === 0 && <p className="secondary">None</p>}
      <dl className="job-pairs">
        {entries.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const CONDITIONS: readonly DataColumn<Job["conditions"][number]>[] = [
  { title: "Type", cell: (condition) => condition.type },
  { title: "Status", cell: (condition) => condition.status },
  { title: "Reason", cell: (condition) => condition.reason },
  { title: "Message", className: "wrap", cell: (condition) => condition.message },
  { title: "Since", className: "time", cell: (condition) => <When time={condition.lastTransitionTime} /> },
];
