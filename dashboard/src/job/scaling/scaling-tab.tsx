import { CircleCheck, CircleDashed, CircleX } from "lucide-react";
import type { Job, ScaleRecord } from "../../api/types";
import { Actor } from "../../ui/actor";
import { actorOf } from "../../ui/actors";
import { type DataColumn, DataTable } from "../../ui/data-table";
import { ErrorNote, Loading } from "../../ui/errors";
import { Length, When } from "../../ui/when";
import { useScaleRecords } from "../use-job-query";
import { AutoscalerDecisions } from "./autoscaler-decisions";

/** The sizes of the job's tasks, the requests to change them, and what the autoscaler decides about them. */
export function ScalingTab({ job }: { job: Job }) {
  const { data, error, refetch } = useScaleRecords(job.uid);
  return (
    <div className="job-section">
      <section>
        <h2>Sizes</h2>
        <DataTable
          caption="Tasks that can be scaled"
          columns={SIZES}
          rows={Object.entries(job.scaling)}
          keyOf={([task]) => task}
          empty="No task of this job can be scaled."
        />
      </section>
      <section>
        <h2>Scale records</h2>
        <p className="secondary">Each request for another size and its outcome, the newest first.</p>
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {data === undefined && error === null && <Loading what="the scale records" />}
        {data !== undefined && (
          <DataTable
            caption="Scale records, the newest first"
            columns={RECORDS}
            rows={data.toReversed()}
            keyOf={(record) => String(record.seq)}
            empty="No other size was ever requested."
          />
        )}
      </section>
      <AutoscalerDecisions job={job} />
    </div>
  );
}

const SIZES: readonly DataColumn<[string, Job["scaling"][string]]>[] = [
  { title: "Task", cell: ([task]) => task },
  { title: "Replicas", cell: ([, { replicas }]) => replicas },
  { title: "Least", cell: ([, { min }]) => min },
  { title: "Most", cell: ([, { max }]) => max },
];

const RECORDS: readonly DataColumn<ScaleRecord>[] = [
  { title: "Requested", className: "time", cell: (record) => <When time={record.requestedAt} /> },
  { title: "Task", cell: ({ task }) => task },
  { title: "Size", cell: ({ fromReplicas, toReplicas }) => `${fromReplicas} → ${toReplicas}` },
  { title: "Outcome", cell: (record) => <Outcome outcome={record.outcome} /> },
  { title: "After", cell: ({ requestedAt, settledAt }) => <Length start={requestedAt} end={settledAt} /> },
  { title: "By", className: "wrap", cell: (record) => <Actor actor={actorOf(record)} /> },
  { title: "Reason", className: "wrap", cell: ({ reason }) => reason || "–" },
  { title: "Message", className: "wrap", cell: ({ message }) => message },
];

const OUTCOMES = {
  Reached: ["succeeded", CircleCheck],
  Refused: ["failed", CircleX],
  Replaced: ["neutral", CircleDashed],
  JobEnded: ["neutral", CircleDashed],
} as const;

function Outcome({ outcome }: { outcome: ScaleRecord["outcome"] }) {
  const [tone, Icon] = outcome === null ? (["changing", CircleDashed] as const) : OUTCOMES[outcome];
  return (
    <span className={`badge tone-${tone}`}>
      <Icon aria-hidden size={14} />
      {outcome ?? "In progress"}
    </span>
  );
}
