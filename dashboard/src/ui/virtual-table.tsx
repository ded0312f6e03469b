import { ArrowUp } from "lucide-react";
import { type FocusEvent, memo, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "react-aria-components";
import { movedPlace, movedTo, type Place, rowsInView, topToShow, widened } from "./rows-in-view";
import { useShortcuts } from "./shortcuts";
import { useViewport } from "./use-viewport";

export interface Column<R> {
  /** The heading, and in narrow windows the label of the cell. */
  title: string;
  /** What the heading shows instead of the title, such as a button that sorts by the column. */
  heading?: ReactNode;
  /** The order of the rows, if they are sorted by this column. */
  order?: "ascending" | "descending" | undefined;
  className: string;
  /** The width in a grid. Without widths, a style sheet has those of the table. */
  width?: string;
  cell: (row: R) => ReactNode;
}

interface VirtualTableProps<R> {
  label: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  keyOf: (row: R) => string;
  /** Where the next page begins, a new value for each page; null if `rows` is complete. */
  next?: object | null;
  /** What is said below the rows if there are more. */
  more?: string;
  /** Called with the index of the last row in view, if `rows` are a part of a list that grows. */
  onShown?: (last: number) => void;
  onOpen: (row: R) => void;
  /** Actions of further keys on the current row. */
  keys?: Readonly<Record<string, (row: R) => void>> | undefined;
}

const ROW_HEIGHT = 44;
const NARROW_ROW_HEIGHT = 84;
const NARROW = "(max-width: 700px)";
/** Rows that are drawn before and after those in view. */
const OVERSCAN = 12;

/**
 * A table that renders only the rows in view, so that it stays fast with 100 000 of them.
 *
 * The rows in view stay where they are when others arrive above them, except at the top, where new rows appear. j and k
 * move the current row, and Enter opens it. The row with the focus is drawn also out of view, so that it keeps the
 * focus. In narrow windows each row is a card of a fixed height. The elements have roles, because the layout of a
 * virtual table needs `display: grid`, for which browsers drop those of <table>.
 */
export function VirtualTable<R>(props: VirtualTableProps<R>) {
  const { rows, columns, keyOf, next = null, onShown } = props;
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  const height = useRowHeight();
  const headHeight = height === NARROW_ROW_HEIGHT ? 0 : ROW_HEIGHT; // cards have no headings
  const [viewport, readViewport] = useViewport(scroller, height);
  const inView = rowsInView(viewport, height, rows.length);
  const scrollTo = (top: number) => {
    if (scroller !== null) scroller.scrollTop = top;
    readViewport();
  };
  const { current, focused, setCurrent, setFocused, arrived } = usePlaces(scroller, rows, keyOf, height, scrollTo);

  // biome-ignore lint/correctness/useExhaustiveDependencies: see below
  useEffect(() => {
    // A page may be empty and still have a successor, so each one counts and not only the number of rows.
    onShown?.(inView.end - 1);
  }, [next, inView.end, rows.length, onShown]);

  const move = (step: number) => {
    const isThere = current !== null && isAt(current, rows, keyOf);
    // The row that followed a removed one has its place.
    const wanted = current === null ? 0 : isThere || step < 0 ? current.index + step : current.index;
    const index = Math.min(rows.length - 1, Math.max(0, wanted));
    const row = rows[index];
    const { scrollTop: top = 0, clientHeight = 0 } = scroller ?? {};
    if (row === undefined) return;
    setCurrent({ key: keyOf(row), index });
    scrollTo(topToShow(index, { top, height: clientHeight - headHeight }, height));
  };
  const onCurrent = (action: (row: R) => void) => () => {
    const row = current === null ? undefined : rows[current.index];
    if (row !== undefined && keyOf(row) === current?.key) action(row);
  };
  const keys = Object.entries(props.keys ?? {}).map(([key, action]) => [key, onCurrent(action)] as const);
  useShortcuts({ j: () => move(1), k: () => move(-1), Enter: onCurrent(props.onOpen), ...Object.fromEntries(keys) });

  const onFocus = (event: FocusEvent) => {
    const index = Number(event.target.closest("[role=row]")?.getAttribute("aria-rowindex")) - 2;
    const row = rows[index];
    setFocused(row === undefined ? null : { key: keyOf(row), index });
  };
  const indexes = indexesOf(widened(inView, rows.length, OVERSCAN), focused, rows.length);
  return (
    <div className="scroll-frame">
      {/* A region that scrolls must be reachable by keyboard. */}
      <section className="table-scroller" ref={setScroller} tabIndex={0} aria-label={`${props.label}, scrollable`}>
        {/* The handlers only note where the focus is. */}
        <div
          className="table"
          role="table"
          aria-label={props.label}
          aria-rowcount={next === null ? rows.length + 1 : -1}
          style={{ height: rows.length * height + headHeight }}
          onFocus={onFocus}
          onBlur={() => setFocused(null)}
        >
          <div className="table-row table-head" role="row" aria-rowindex={1} style={gridOf(columns)}>
            {columns.map((column) => (
              <div key={column.title} role="columnheader" className={column.className} aria-sort={column.order}>
                {column.heading ?? column.title}
              </div>
            ))}
          </div>
          {indexes.map((index) => {
            const row = rows[index];
            if (row === undefined) return null;
            const key = keyOf(row);
            const top = index * height + headHeight;
            const grid = height === NARROW_ROW_HEIGHT ? undefined : gridOf(columns);
            const gridColumns = grid?.gridTemplateColumns;
            return (
              <TableRow
                key={key}
                {...{ row, columns, index, height, top, gridColumns }}
                isCurrent={key === current?.key}
              />
            );
          })}
        </div>
        {next !== null && <p className="loading">{props.more}</p>}
      </section>
      {onShown !== undefined && arrived > 0 && (
        <Button className="button primary scroll-to-top" onPress={() => scrollTo(0)}>
          <ArrowUp aria-hidden size={14} /> {arrived} new
        </Button>
      )}
    </div>
  );
}

interface TableRowProps<R> {
  row: R;
  columns: readonly Column<R>[];
  index: number;
  height: number;
  top: number;
  gridColumns: string | undefined;
  isCurrent: boolean;
}

/** A row, which is rendered again only if it has changed or moved. */
const TableRow = memo(function TableRow<R>({ row, columns, index, height, ...props }: TableRowProps<R>) {
  const { top, gridColumns, isCurrent } = props;
  return (
    <div
      className={isCurrent ? "table-row is-current" : "table-row"}
      role="row"
      aria-rowindex={index + 2}
      aria-current={isCurrent || undefined}
      style={{ height, transform: `translateY(${top}px)`, gridTemplateColumns: gridColumns }}
    >
      {columns.map((column) => (
        <div key={column.title} role="cell" className={column.className}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}) as <R>(props: TableRowProps<R>) => ReactNode;

/** Return the grid of a row in wide windows; undefined if a style sheet has it. */
function gridOf<R>(columns: readonly Column<R>[]): { gridTemplateColumns: string } | undefined {
  const widths = columns.map(({ width }) => width);
  return widths.includes(undefined) ? undefined : { gridTemplateColumns: widths.join(" ") };
}

/** Return the current row and the row with the focus, and how many rows have arrived above those in view. */
function usePlaces<R>(
  scroller: HTMLElement | null,
  rows: readonly R[],
  keyOf: (row: R) => string,
  height: number,
  scrollTo: (top: number) => void,
) {
  const [current, setCurrent] = useState<Place | null>(null);
  const [focused, setFocused] = useState<Place | null>(null);
  const [arrived, setArrived] = useState(0);
  const [placed, setPlaced] = useState(rows);
  if (placed !== rows) {
    // Before the rows are drawn: the element of a row that is not drawn once loses the focus.
    setPlaced(rows);
    setCurrent(movedPlace(current, placed, rows, keyOf));
    setFocused(movedPlace(focused, placed, rows, keyOf));
  }
  const known = useRef(rows);
  const top = scroller?.scrollTop ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rows in view stay when the rows change
  useLayoutEffect(() => {
    const before = known.current;
    known.current = rows;
    if (before === rows) return;
    const { scrollTop = 0 } = scroller ?? {};
    const first = Math.floor(scrollTop / height);
    const moved = first === 0 ? null : movedTo(before, rows, first, keyOf);
    if (moved === null || moved === first) return;
    scrollTo(scrollTop + (moved - first) * height);
    setArrived((count) => Math.max(0, count + moved - first));
  }, [rows]);
  if (arrived > 0 && top < height) setArrived(0);
  return { current, focused, setCurrent, setFocused, arrived };
}

function isAt<R>(place: Place, rows: readonly R[], keyOf: (row: R) => string): boolean {
  const row = rows[place.index];
  return row !== undefined && keyOf(row) === place.key;
}

/** Return the rows that are drawn: those of the range, and the one with the focus. */
function indexesOf({ start, end }: { start: number; end: number }, focused: Place | null, count: number): number[] {
  const indexes = Array.from({ length: end - start }, (_, index) => start + index);
  if (focused === null || focused.index >= count) return indexes;
  if (focused.index < start) return [focused.index, ...indexes];
  return focused.index >= end ? [...indexes, focused.index] : indexes;
}

function useRowHeight(): number {
  const [isNarrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const query = window.matchMedia(NARROW);
    const onChange = () => setNarrow(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return isNarrow ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
}
