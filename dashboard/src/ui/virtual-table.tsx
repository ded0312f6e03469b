import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useShortcuts } from "./shortcuts";

export interface Column<R> {
  /** The heading, and in narrow windows the label of the cell. */
  title: string;
  className: string;
  cell: (row: R) => ReactNode;
}

interface VirtualTableProps<R> {
  label: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  keyOf: (row: R) => string;
  /** The token of the next page; null if `rows` is complete. */
  next: string | null;
  onNearEnd: () => void;
  onOpen: (row: R) => void;
  /** Actions of further keys on the current row. */
  keys?: Readonly<Record<string, (row: R) => void>>;
}

const ROW_HEIGHT = 44;
const NARROW_ROW_HEIGHT = 84;
const NARROW = "(max-width: 700px)";
/** Rows before the end of the loaded ones at which the next page is requested. */
const NEAR_END = 50;

/**
 * A table that renders only the rows in view, so that it stays fast with 100 000 of them.
 *
 * j and k move the current row, and Enter opens it. In narrow windows each row is a card of a fixed height. The elements
 * have roles, because the layout of a virtual table needs `display: grid`, for which browsers drop those of <table>.
 */
export function VirtualTable<R>(props: VirtualTableProps<R>) {
  const { rows, columns, next, onNearEnd } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState<string | null>(null);
  const height = useRowHeight();
  const headHeight = height === NARROW_ROW_HEIGHT ? 0 : ROW_HEIGHT; // cards have no headings
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : props.keyOf(row);
    },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measures again when the height of rows changes
  useEffect(() => virtualizer.measure(), [height]);

  const shown = virtualizer.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    // A page may be empty and still have a successor, so each token counts and not only the number of rows.
    if (next !== null && last >= rows.length - NEAR_END) onNearEnd();
  }, [next, last, rows.length, onNearEnd]);

  const move = (step: number) => {
    const index = rows.findIndex((row) => props.keyOf(row) === current);
    const target = Math.min(rows.length - 1, Math.max(0, index < 0 ? 0 : index + step));
    const row = rows[target];
    if (row === undefined) return;
    setCurrent(props.keyOf(row));
    virtualizer.scrollToIndex(target);
  };
  const onCurrent = (action: (row: R) => void) => () => {
    const row = rows.find((each) => props.keyOf(each) === current);
    if (row !== undefined) action(row);
  };
  const keys = Object.entries(props.keys ?? {}).map(([key, action]) => [key, onCurrent(action)] as const);
  useShortcuts({ j: () => move(1), k: () => move(-1), Enter: onCurrent(props.onOpen), ...Object.fromEntries(keys) });

  return (
    // A region that scrolls must be reachable by keyboard.
    <section className="table-scroller" ref={scroller} tabIndex={0} aria-label={`${props.label}, scrollable`}>
      <div
        className="table"
        role="table"
        aria-label={props.label}
        aria-rowcount={next === null ? rows.length + 1 : -1}
        style={{ height: virtualizer.getTotalSize() + headHeight }}
      >
        <div className="table-row table-head" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <div key={column.title} role="columnheader" className={column.className}>
              {column.title}
            </div>
          ))}
        </div>
        {shown.map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          const isCurrent = props.keyOf(row) === current;
          return (
            <div
              key={item.key}
              className={isCurrent ? "table-row is-current" : "table-row"}
              role="row"
              aria-rowindex={item.index + 2}
              aria-current={isCurrent || undefined}
              style={{ height: item.size, transform: `translateY(${item.start + headHeight}px)` }}
            >
              {columns.map((column) => (
                <div key={column.title} role="cell" className={column.className}>
                  {column.cell(row)}
                </div>
              ))}
            </div>
          );
        })}
      </div>
      {next !== null && <p className="loading">Loading older {props.label.toLowerCase()}…</p>}
    </section>
  );
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
