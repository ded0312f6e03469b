import { ArrowDownToLine, Clock, ScrollText, WrapText } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { Button, ToggleButton } from "react-aria-components";
import type { Job, Replica } from "../../api/types";
import { ErrorNote } from "../../ui/errors";
import { thousands } from "../../ui/numbers";
import { useShortcuts } from "../../ui/shortcuts";
import { replicaName } from "../names";
import { DownloadButton } from "./download-button";
import type { LogFollower, LogState } from "./follower";
import { LogLines, type LogLinesHandle } from "./log-lines";
import { nextMatch, positionOf, searchFor } from "./search";
import { SearchBar } from "./search-bar";
import type { Target } from "./selection";
import { summaryOf } from "./summary";
import { useLineCounts, useLog, useMatches } from "./use-log";

/** How a log is shown. It stays when the reader chooses another log. */
export interface LogOptions {
  isWrapped: boolean;
  hasTimes: boolean;
  /** Whether the text that is searched for is a regular expression. */
  isRegex: boolean;
}

interface LogViewProps {
  job: Job;
  target: Target;
  /** All replicas of the job. */
  replicas: readonly Replica[];
  /** The text that is searched for. */
  text: string;
  onText: (text: string) => void;
  options: LogOptions;
  onOptions: (change: Partial<LogOptions>) => void;
  /** Shows the whole log from its beginning, if it is kept. */
  onWhole: () => void;
}

/** A log with its search, its options and its state. */
export function LogView({ job, target, replicas, text, onText, options, onOptions, onWhole }: LogViewProps) {
  const { isWrapped, hasTimes, isRegex } = options;
  const { follower, state } = useLog(job, target, replicas);
  const { ring } = follower;
  const [isFollowing, setFollowing] = useState(true);
  const [current, setCurrent] = useState<number | null>(null);
  const lines = useRef<LogLinesHandle>(null);
  const input = useRef<HTMLInputElement>(null);
  const search = useMemo(() => searchFor(text, isRegex), [text, isRegex]);
  const matches = useMatches(follower, search.matcher);
  const step = (direction: 1 | -1) => {
    const top = lines.current?.top() ?? 0;
    // The first step, and one from a line that was dropped, begin with the lines in view.
    const from = current !== null && current >= ring.first ? current : direction === 1 ? top - 1 : top;
    const next = nextMatch(matches ?? [], from, direction);
    if (next === null) return;
    setFollowing(false);
    setCurrent(next);
    lines.current?.show(next);
  };
  const previous = () => step(-1);
  useShortcuts({
    "/": () => input.current?.focus(),
    n: () => step(1),
    N: previous,
    w: () => onOptions({ isWrapped: !isWrapped }),
    f: () => setFollowing(!isFollowing),
  });
  const name = target.kind === "merged" ? (target.task ?? "all replicas") : replicaName(target.task, target.rank);
  return (
    <>
      <div className="log-bar">
        <SearchBar
          input={input}
          text={text}
          onText={onText}
          isRegex={isRegex}
          onRegex={(wanted) => onOptions({ isRegex: wanted })}
          error={search.error}
          matches={matches?.length ?? null}
          position={positionOf(matches ?? [], current)}
          onStep={step}
        />
        <div className="log-options-bar">
          <ToggleButton className="button" isSelected={isFollowing} onChange={setFollowing}>
            <ArrowDownToLine aria-hidden size={14} /> Follow
          </ToggleButton>
          <ToggleButton
            className="button"
            isSelected={isWrapped}
            onChange={(wanted) => onOptions({ isWrapped: wanted })}
          >
            <WrapText aria-hidden size={14} /> Wrap
          </ToggleButton>
          <ToggleButton className="button" isSelected={hasTimes} onChange={(wanted) => onOptions({ hasTimes: wanted })}>
            <Clock aria-hidden size={14} /> Times
          </ToggleButton>
          {target.kind === "one" && state.source?.isKept && (
            <Button className="button" onPress={onWhole}>
              <ScrollText aria-hidden size={14} /> Whole log
            </Button>
          )}
          <DownloadButton job={job} target={target} hasTimes={hasTimes} />
        </div>
      </div>
      <LogSummary follower={follower} state={state} />
      <LogLines
        label={`Log of ${name}`}
        follower={follower}
        isFollowing={isFollowing}
        onFollow={setFollowing}
        isWrapped={isWrapped}
        hasTimes={hasTimes}
        matcher={search.matcher}
        current={current}
        handle={lines}
      />
    </>
  );
}

function LogSummary({ follower, state }: { follower: LogFollower; state: LogState }) {
  const { kept, dropped } = useLineCounts(follower);
  const summary = summaryOf({ ...state, dropped });
  return (
    <div className="log-summary">
      <p>
        <span className={`badge tone-${summary.tone}`} role="status">
          {summary.state}
        </span>
        <span className="secondary">
          {thousands(kept)} {kept === 1 ? "line" : "lines"}
        </span>
        {summary.notes.map((note) => (
          <span key={note} className="secondary">
            {note}
          </span>
        ))}
      </p>
      {state.phase === "waiting" && <p className="secondary">{state.error?.message}</p>}
      {state.phase === "failed" && state.error !== null && (
        <ErrorNote error={state.error} onRetry={() => follower.retry()} />
      )}
    </div>
  );
}
