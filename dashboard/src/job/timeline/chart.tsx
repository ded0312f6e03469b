import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, memo, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { parseHash } from "../../routing/location";
import { pushQuery } from "../../routing/use-location";
import { withSelection } from "../replicas/selection";
import { placeOf, type Range, type Tick, ticksOf } from "./axis";
import { Bars, Patterns, ROW_HEIGHT, RunningArea } from "./bars";
import { Head } from "./head";
import { type Mark, type PhaseSpan, type PlacedMark, placedMarks } from "./marks";
import type { GroupRow, ReplicaRow, TimelineRow } from "./rows";
import { useWidth } from "./use-width";

interface ChartProps {
  rows: readonly TimelineRow[];
  range: Range;
  marks: readonly Mark[];
  phases: readonly PhaseSpan[];
  onToggle: (task: string) => void;
  onZoom: (range: Range) => void;
}

/** Pixels of the head: the axis and the phases, and the marks if there are any. */
const HEAD_HEIGHT = 46;
const MARKS_HEIGHT = 20;

/** The chart renders only the rows in view. The arrow keys move between them. */
export function Chart({ rows, range, marks, phases, onToggle, onZoom }: ChartProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const width = useWidth(plot);
  const headHeight = HEAD_HEIGHT + (marks.length > 0 ? MARKS_HEIGHT : 0);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 10,
    scrollMargin: headHeight,
    scrollPaddingStart: headHeight,
  });
  const ticks = useMemo(() => ticksOf(range, width, -new Date(range.end).getTimezoneOffset()), [range, width]);
  const placed = useMemo(() => placedMarks(marks, range, width), [marks, range, width]);
  const focus = useRowFocus(rows.length, scroller, (index) => virtualizer.scrollToIndex(index));
  const items = virtualizer.getVirtualItems();
  // The tab key must reach a row, also if the current one has been scrolled out of the page.
  const tabbable = items.some((item) => item.index === focus.current) ? focus.current : items[0]?.index;
  return (
    <div className="timeline-chart" ref={scroller}>
      <Patterns />
      <Head {...{ range, width, ticks, phases, plot, onZoom }} marks={placed} />
      <ul
        className="timeline-rows"
        aria-label="Replicas over time"
        style={{ height: virtualizer.getTotalSize() }}
        onKeyDown={focus.onKeyDown}
      >
        <Grid range={range} width={width} ticks={ticks} marks={placed} />
        {items.map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          const shared = { range, width, index: item.index, isCurrent: item.index === tabbable };
          return (
            <li
              key={item.key}
              aria-setsize={rows.length}
              aria-posinset={item.index + 1}
              style={{ transform: `translateY(${item.start - headHeight}px)` }}
            >
              {row.type === "group" ? (
                <GroupButton row={row} onToggle={onToggle} {...shared} />
              ) : (
                <ReplicaButton row={row} {...shared} />
              )}
            </li>
          );
        })}
      </ul>
      {rows.length === 0 && <p className="empty">No replica to show.</p>}
    </div>
  );
}

interface RowProps {
  range: Range;
  width: number;
  index: number;
  /** Whether the tab key reaches this row. */
  isCurrent: boolean;
}

// Scrolling renders the chart for each frame: the rows that stay in view must cost nothing.
const GroupButton = memo(({ row, onToggle, range, width, index, isCurrent }: RowProps & GroupRowProps) => {
  const Icon = row.isOpen ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      className="timeline-row timeline-group"
      data-row={index}
      tabIndex={isCurrent ? 0 : -1}
      aria-expanded={row.isOpen}
      aria-label={`${row.task} ${row.text}`}
      title={row.text}
      onClick={() => onToggle(row.task)}
    >
      <span className="timeline-label">
        <Icon aria-hidden size={14} />
        <span className="timeline-name">{row.task}</span> <span className="secondary">{row.size}</span>
      </span>
      <RunningArea steps={row.steps} range={range} width={width} />
    </button>
  );
});

interface GroupRowProps {
  row: GroupRow;
  onToggle: (task: string) => void;
}

const ReplicaButton = memo(({ row, range, width, index, isCurrent }: RowProps & { row: ReplicaRow }) => {
  const { task, rank } = row.replica;
  const open = (event: MouseEvent) => {
    const bar = (event.target as Element).closest("[data-attempt]");
    const attempt = bar?.getAttribute("data-attempt");
    const { query } = parseHash(window.location.hash);
    pushQuery(withSelection(query, { task, rank, attempt: attempt == null ? null : Number(attempt) }));
  };
  return (
    <button
      type="button"
      className="timeline-row"
      data-row={index}
      tabIndex={isCurrent ? 0 : -1}
      aria-label={row.text}
      title={row.text}
      onClick={open}
    >
      <span className="timeline-label">
        <span className="timeline-name">{row.name}</span>
      </span>
      <Bars bars={row.bars} range={range} width={width} />
    </button>
  );
});

/** The vertical lines of ticks and marks, behind the rows. */
const Grid = memo(({ range, width, ticks, marks }: GridProps) => {
  return (
    <svg className="timeline-grid" width={width} aria-hidden focusable="false">
      {ticks.map(({ at }) => {
        const x = placeOf(at, range, width);
        return <line key={at} className="timeline-line" x1={x} x2={x} y1="0" y2="100%" />;
      })}
      {marks.map(({ x }) => (
        <line key={x} className="timeline-mark-line" x1={x} x2={x} y1="0" y2="100%" />
      ))}
    </svg>
  );
});

interface GridProps {
  range: Range;
  width: number;
  ticks: readonly Tick[];
  marks: readonly PlacedMark[];
}

const MOVES: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** Let the tab key reach one row, and the arrow keys move from it to others, also to those that are not rendered. */
function useRowFocus(count: number, scroller: RefObject<HTMLElement | null>, show: (index: number) => void) {
  const [current, setCurrent] = useState(0);
  const [isMoving, setMoving] = useState(false);
  const index = Math.min(current, count - 1);
  useEffect(() => {
    if (!isMoving) return;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-row="${index}"]`);
    if (row == null) return; // it is rendered after the scrolling
    row.focus({ preventScroll: true });
    setMoving(false);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const edges: Readonly<Record<string, number>> = { Home: 0, End: count - 1 };
    const target = edges[event.key] ?? index + (MOVES[event.key] ?? 0);
    const next = Math.max(0, Math.min(count - 1, target));
    if (!(event.key in MOVES) && !(event.key in edges)) return;
    event.preventDefault();
    setCurrent(next);
    setMoving(true);
    show(next);
  };
  return { current: index, onKeyDown };
}
