import { ArrowDownToLine, Clock } from "lucide-react";
import { type FormEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Button, ToggleButton } from "react-aria-components";
import type { Job } from "../../../api/types";
import { useStore } from "../../../live/store";
import { usePage } from "../../../page-context";
import { ErrorNote } from "../../../ui/errors";
import { thousands } from "../../../ui/numbers";
import { useShortcuts } from "../../../ui/shortcuts";
import { replicaName } from "../../names";
import { DownloadButton } from "../download-button";
import type { LogOptions } from "../log-view";
import { nextMatch, positionOf, searchFor } from "../search";
import { SearchBar } from "../search-bar";
import { keyOf, type Selection } from "../selection";
import { LogWindow } from "./log-window";
import { type OneTarget, openLog, type Wanted } from "./requests";
import { WholeLines, type WholeLinesHandle } from "./whole-lines";
import { MOST_MATCHES, WholeSearch } from "./whole-search";

interface WholeLogViewProps {
  job: Job;
  target: OneTarget;
  /** What the address selects, with the byte or the time that is shown. */
  selection: Selection;
  text: string;
  onText: (text: string) => void;
  options: LogOptions;
  onOptions: (change: Partial<LogOptions>) => void;
  onSelect: (change: Partial<Selection>) => void;
}

/** All of a log that is kept: its lines around a place, a search of the whole log, and addresses of lines and times. */
export function WholeLogView({
  job,
  target,
  selection,
  text,
  onText,
  options,
  onOptions,
  onSelect,
}: WholeLogViewProps) {
  const { window, search } = useWhole(job.uid, target);
  const state = useStore(window.state);
  const found = useStore(search.state);
  const [top, setTop] = useState(selection.at ?? 0);
  const lines = useRef<WholeLinesHandle>(null);
  const input = useRef<HTMLInputElement>(null);
  const { isRegex, hasTimes } = options;
  const { at, time } = selection;
  useEffect(() => {
    if (at !== null) window.jump(at);
    else if (time !== null) window.jumpToTime(time, (offset) => onSelect({ at: offset, time: null }));
  }, [window, at, time, onSelect]);
  useEffect(() => {
    const timer = setTimeout(() => search.start(text, isRegex), 300);
    return () => clearTimeout(timer);
  }, [search, text, isRegex]);
  const matcher = useMemo(() => searchFor(text, isRegex).matcher, [text, isRegex]);
  const step = (direction: 1 | -1) => {
    const from = at ?? lines.current?.top() ?? 0;
    const next = nextMatch(found.offsets ?? [], from, direction);
    if (next !== null) onSelect({ at: next });
  };
  const onLine = useCallback((offset: number) => onSelect({ at: offset, time: null }), [onSelect]);
  const move = (by: 1 | -1) => {
    const next = window.near(at ?? lines.current?.top() ?? 0, by);
    if (next !== null) onLine(next);
  };
  useShortcuts({
    "/": () => input.current?.focus(),
    n: () => step(1),
    N: () => step(-1),
    j: () => move(1),
    k: () => move(-1),
    f: () => onSelect(END),
  });
  return (
    <>
      <div className="log-bar">
        <SearchBar
          input={input}
          text={text}
          onText={onText}
          isRegex={isRegex}
          onRegex={(wanted) => onOptions({ isRegex: wanted })}
          error={found.error?.message ?? null}
          matches={found.offsets?.length ?? null}
          position={positionOf(found.offsets ?? [], at)}
          onStep={step}
        />
        <div className="log-options-bar">
          <TimeField onTime={(wanted) => onSelect({ at: null, time: wanted })} />
          <ToggleButton className="button" isSelected={hasTimes} onChange={(wanted) => onOptions({ hasTimes: wanted })}>
            <Clock aria-hidden size={14} /> Times
          </ToggleButton>
          <Button className="button" onPress={() => onSelect(END)}>
            <ArrowDownToLine aria-hidden size={14} /> Follow the end
          </Button>
          <DownloadButton job={job} target={target} hasTimes={hasTimes} />
        </div>
      </div>
      <div className="log-summary">
        <p>
          <span className="badge tone-neutral" role="status">
            Whole log
          </span>
          <span className="secondary">{thousands(state.size)} bytes</span>
          {state.isLoading && <span className="secondary">Loading…</span>}
          {found.isSearching && <span className="secondary">Searching…</span>}
          {found.isCut && (
            <span className="secondary">The search ended at the first {thousands(MOST_MATCHES)} matches.</span>
          )}
        </p>
        {state.error !== null && <ErrorNote error={state.error} onRetry={() => window.jump(at ?? top)} />}
        <Position value={top} size={state.size} onPosition={(offset) => onSelect({ at: offset })} />
      </div>
      <WholeLines
        label={`Whole log of ${replicaName(target.task, target.rank)}`}
        window={window}
        current={at}
        onLine={onLine}
        onTop={setTop}
        hasTimes={hasTimes}
        matcher={matcher}
        handle={lines}
      />
    </>
  );
}

const END: Partial<Selection> = { at: null, time: null };

/** Return the window and the search of a log, which end when the component is no longer shown. */
function useWhole(uid: string, target: OneTarget): { window: LogWindow; search: WholeSearch } {
  const { transport } = usePage().api;
  const key = keyOf(target);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the target
  const whole = useMemo(() => {
    const open = (wanted: Wanted, signal: AbortSignal) => openLog(transport, uid, target, wanted, signal);
    return { window: new LogWindow(open), search: new WholeSearch(open) };
  }, [transport, uid, key]);
  useEffect(
    () => () => {
      whole.window.stop();
      whole.search.stop();
    },
    [whole],
  );
  return whole;
}

/** The place in the whole log, which the reader can move. The log is read there when it is released. */
function Position({ value, size, onPosition }: { value: number; size: number; onPosition: (offset: number) => void }) {
  const [moved, setMoved] = useState<number | null>(null);
  const release = () => {
    if (moved !== null) onPosition(moved);
    setMoved(null);
  };
  return (
    <input
      className="log-position"
      type="range"
      aria-label="Position in the log"
      aria-valuetext={`byte ${thousands(moved ?? value)} of ${thousands(size)}`}
      min={0}
      max={Math.max(size, 1)}
      value={moved ?? Math.min(value, size)}
      onChange={(event) => setMoved(Number(event.target.value))}
      onPointerUp={release}
      onKeyUp={release}
      onBlur={release}
    />
  );
}

function TimeField({ onTime }: { onTime: (time: string) => void }) {
  const [value, setValue] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const time = new Date(value);
    if (!Number.isNaN(time.getTime())) onTime(time.toISOString());
  };
  return (
    <form className="log-time-form" onSubmit={submit}>
      <label className="visually-hidden" htmlFor="log-time">
        Go to a time
      </label>
      <input
        id="log-time"
        type="datetime-local"
        step={1}
        value={value}
        onChange={(event) => setValue(event.target.value)}
      />
      <Button className="button" type="submit">
        Go
      </Button>
    </form>
  );
}
