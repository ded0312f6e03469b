import { type RefObject, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { useStore } from "../../../live/store";
import { rowsInView, widened } from "../../../ui/rows-in-view";
import { useViewport } from "../../../ui/use-viewport";
import { type LineStyle, LogLineView } from "../log-line";
import { indexAt, type LogWindow } from "./log-window";

/** The height of a line, as in logs.css. */
const LINE_HEIGHT = 20;
/** Lines that are drawn before and after those in view. */
const OVERSCAN = 20;
/** Lines before the end of the window at which it grows. */
const AHEAD = 500;

export interface WholeLinesHandle {
  /** The first byte of the first line in view. */
  top(): number;
}

interface WholeLinesProps extends LineStyle {
  label: string;
  window: LogWindow;
  /** A byte of the line that the address or the search names. */
  current: number | null;
  /** Is called with the first byte of a line whose number is pressed. */
  onLine: (offset: number) => void;
  onTop: (offset: number) => void;
  handle: RefObject<WholeLinesHandle | null>;
}

/** The lines of a whole log around a place, of which only those in view are rendered. */
export function WholeLines({ label, window, current, onLine, onTop, handle, ...style }: WholeLinesProps) {
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const state = useStore(window.state);
  const { lines, target, shift } = state;
  const [viewport, readViewport] = useViewport(scroller, LINE_HEIGHT);
  const drawn = widened(rowsInView(viewport, LINE_HEIGHT, lines.length), lines.length, OVERSCAN);
  const shown = useRef<object | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each state of the window moves its lines once
  useLayoutEffect(() => {
    if (scroller === null) return;
    if (target !== shown.current && target !== null) {
      const middle = (scroller.clientHeight - LINE_HEIGHT) / 2;
      scroller.scrollTop = indexAt(lines, target.offset) * LINE_HEIGHT - middle;
      shown.current = target;
    } else if (shift !== 0) scroller.scrollTop += shift * LINE_HEIGHT;
    readViewport();
  }, [scroller, state]);
  const first = Math.floor(viewport.top / LINE_HEIGHT);
  const top = lines[first]?.offset ?? 0;
  useEffect(() => {
    if (viewport.height === 0 || lines.length === 0) return;
    onTop(top);
    if (first < AHEAD) window.extendUp();
    if (lines.length - drawn.end < AHEAD) window.extendDown();
  }, [window, first, top, drawn.end, viewport.height, lines, onTop]);
  // Not a link for each line: it would be smaller than what people can hit. The keys j and k move from line to line.
  useEffect(() => {
    const onClick = (event: MouseEvent) => {
      const number = event.target instanceof Element ? event.target.closest<HTMLElement>(".log-number") : null;
      if (number !== null) onLine(Number(number.dataset.offset));
    };
    scroller?.addEventListener("click", onClick);
    return () => scroller?.removeEventListener("click", onClick);
  }, [scroller, onLine]);
  useImperativeHandle(handle, () => ({ top: () => top }));
  // An address can name any byte of a line.
  const marked = current === null ? null : lines[indexAt(lines, current)]?.offset;
  const width = `${String(lines.at(-1)?.number ?? 0).length}ch`;
  return (
    <div
      className="log-scroller"
      ref={setScroller}
      role="log"
      aria-label={label}
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
    >
      <div className="log-lines" style={{ height: lines.length * LINE_HEIGHT }}>
        <div className="log-block" style={{ transform: `translateY(${drawn.start * LINE_HEIGHT}px)` }}>
          {lines.slice(drawn.start, drawn.end).map((line) => (
            <div key={`${line.offset} ${line.isMissing}`} className={line.isMissing ? "log-row is-missing" : "log-row"}>
              <span className="log-number" style={{ width }} data-offset={line.offset}>
                {line.number}
              </span>
              <LogLineView line={line} isCurrent={line.offset === marked && !line.isMissing} {...style} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
