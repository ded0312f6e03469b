import { useCallback, useMemo, useState } from "react";
import type { Job } from "../../api/types";
import { ErrorNote, Loading } from "../../ui/errors";
import { useNow } from "../../ui/now";
import { hasEnded } from "../names";
import { useHistory, useReplicas, useScaleRecords } from "../use-job-query";
import { fitting, type Range, within } from "./axis";
import { Chart } from "./chart";
import { Controls } from "./controls";
import { Legend } from "./legend";
import { marksOf, phaseSpans } from "./marks";
import { type Group, groupsOf, isTroubled, timelineRows } from "./rows";
import "./timeline.css";

/** The replicas of the job over time: a row for each replica, a bar for each attempt. */
export function Timeline({ job }: { job: Job }) {
  const replicas = useReplicas(job.uid);
  const history = useHistory(job.uid);
  const records = useScaleRecords(job.uid);
  const error = replicas.error ?? history.error ?? records.error;
  const retry = () => {
    for (const query of [replicas, history, records]) if (query.isError) void query.refetch();
  };
  const groups = useMemo(() => groupsOf(replicas.data ?? []), [replicas.data]);
  const marks = useMemo(() => marksOf(records.data ?? [], history.data ?? []), [records.data, history.data]);
  const phases = useMemo(() => phaseSpans(job, history.data ?? []), [job, history.data]);

  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [onlyTroubled, setOnlyTroubled] = useState(false);
  const [chosen, setChosen] = useState<Range | null>(null);
  const rows = useMemo(() => timelineRows(groups, closed, onlyTroubled), [groups, closed, onlyTroubled]);
  const full = useFullRange(
    job,
    groups,
    marks.map((mark) => mark.at),
  );
  const { start, end } = chosen === null ? full : within(chosen, full);
  const range = useMemo(() => ({ start, end }), [start, end]);
  const troubled = groups.reduce((sum, group) => sum + group.rows.filter(isTroubled).length, 0);

  const toggle = useCallback((task: string) => setClosed((tasks) => toggled(tasks, task)), []);
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={retry} />}
      {replicas.data === undefined && replicas.error === null && <Loading what="the timeline" />}
      {replicas.data !== undefined && (
        <div className="timeline">
          <Controls
            range={range}
            full={full}
            isFitting={chosen === null}
            onChange={setChosen}
            troubled={troubled}
            onlyTroubled={onlyTroubled}
            onOnlyTroubled={setOnlyTroubled}
          />
          <Chart rows={rows} range={range} marks={marks} phases={phases} onToggle={toggle} onZoom={setChosen} />
          <Legend />
        </div>
      )}
    </>
  );
}

function toggled(tasks: ReadonlySet<string>, task: string): ReadonlySet<string> {
  const changed = new Set(tasks);
  if (!changed.delete(task)) changed.add(task);
  return changed;
}

/** Return the whole time of the job. It ends now while the job is live. */
function useFullRange(job: Job, groups: readonly Group[], marks: readonly number[]): Range {
  const now = useNow();
  const known = useMemo(() => {
    const bars = groups.flatMap((group) => group.rows.flatMap((row) => row.bars));
    const times = bars.flatMap(({ start, end }) => (end === null ? [start] : [start, end]));
    const { createdAt, status } = job;
    return [Date.parse(createdAt), ...(status.finishedAt === null ? [] : [Date.parse(status.finishedAt)]), ...times];
  }, [job, groups]);
  return fitting([...known, ...marks], hasEnded(job) ? null : now);
}
