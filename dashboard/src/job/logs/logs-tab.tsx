import { useCallback, useEffect, useRef, useState } from "react";
import type { Job, Replica } from "../../api/types";
import { pushQuery, replaceQuery, useLocation } from "../../routing/use-location";
import { ErrorNote, Loading } from "../../ui/errors";
import { useReplicas } from "../use-job-query";
import { type LogOptions, LogView } from "./log-view";
import "./logs.css";
import { ReplicaChoice } from "./replica-choice";
import { keyOf, type Selection, selectionOf, type Target, targetOf, withSelection } from "./selection";
import { WholeLogView } from "./whole/whole-log-view";

/** The logs of a job: of all replicas together, or of one of them. The address holds the selection. */
export function LogsTab({ job }: { job: Job }) {
  const { query } = useLocation();
  const { data: replicas, error, refetch } = useReplicas(job.uid);
  const latest = useRef(query);
  latest.current = query;
  const select = useCallback((change: Partial<Selection>) => {
    const changed = { ...selectionOf(latest.current), ...change };
    // A search is typed letter by letter.
    (change.search === undefined ? pushQuery : replaceQuery)(withSelection(latest.current, changed));
  }, []);
  if (replicas === undefined) {
    return error === null ? (
      <Loading what="the replicas" />
    ) : (
      <ErrorNote error={error} onRetry={() => void refetch()} />
    );
  }
  const selection = selectionOf(query);
  const target = targetOf(selection, replicas);
  if (target === null) return <p className="empty">The job has no replicas yet.</p>;
  return (
    <div className="logs">
      <ReplicaChoice replicas={replicas} target={target} onChange={select} />
      <SearchedLog job={job} target={target} replicas={replicas} selection={selection} onChange={select} />
    </div>
  );
}

interface SearchedLogProps {
  job: Job;
  target: Target;
  replicas: readonly Replica[];
  selection: Selection;
  onChange: (change: Partial<Selection>) => void;
}

/** A log and the text that is searched for, which the address gets a moment after the last key. */
function SearchedLog({ job, target, replicas, selection, onChange }: SearchedLogProps) {
  const { search } = selection;
  const [text, setText] = useState(search);
  const [options, setOptions] = useState<LogOptions>({ isWrapped: false, hasTimes: false, isRegex: false });
  useEffect(() => setText(search), [search]);
  useEffect(() => {
    if (text === search) return;
    const timer = setTimeout(() => onChange({ search: text }), 300);
    return () => clearTimeout(timer);
  }, [text, search, onChange]);
  const shown = {
    job,
    text,
    onText: setText,
    options,
    onOptions: (change: Partial<LogOptions>) => setOptions({ ...options, ...change }),
  };
  if (target.kind === "one" && (selection.at !== null || selection.time !== null)) {
    return <WholeLogView key={keyOf(target)} target={target} selection={selection} onSelect={onChange} {...shown} />;
  }
  return (
    <LogView key={keyOf(target)} target={target} replicas={replicas} onWhole={() => onChange({ at: 0 })} {...shown} />
  );
}
