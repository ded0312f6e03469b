import { useCallback, useImperativeHandle, useLayoutEffect, useRef } from "react";
import { useStore } from "../../live/store";
import { rowsInView, widened } from "../../ui/rows-in-view";
import { useViewport } from "../../ui/use-viewport";
import { LogLineView, sourceColumn } from "./log-line";
import type { DrawnLinesProps } from "./log-lines";
import { useEndInView } from "./use-end-in-view";

/** The height of a line that is not wrapped, as in logs.css. */
const LINE_HEIGHT = 20;
/** Lines that are drawn before and after those in view, so that they are ready when the reader scrolls. */
const OVERSCAN = 20;

/**
 * Lines that are not wrapped. Their height is known, so the work of a frame depends on the lines in view, and not on
 * those that are kept. They are moved as one block: a line that stays in view is not touched.
 */
export function FixedLines({ follower, scroller, isFollowing, current, handle, ...style }: DrawnLinesProps) {
  useStore(follower.version);
  const { ring } = follower;
  const { first, end, length } = ring;
  const [viewport, readViewport] = useViewport(scroller, LINE_HEIGHT, isFollowing);
  const inView = rowsInView(isFollowing ? { ...viewport, top: length * LINE_HEIGHT } : viewport, LINE_HEIGHT, length);
  const drawn = isFollowing ? inView : widened(inView, length, OVERSCAN);
  const known = useRef(first);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line and a dropped one move the others
  useLayoutEffect(() => {
    const dropped = first - known.current;
    known.current = first;
    if (isFollowing) scroller.scrollTop = length * LINE_HEIGHT;
    else if (dropped > 0) {
      scroller.scrollTop -= dropped * LINE_HEIGHT;
      readViewport();
    }
  }, [first, end, isFollowing]);
  const toEnd = useCallback(() => {
    scroller.scrollTop = scroller.scrollHeight;
  }, [scroller]);
  useEndInView(scroller, isFollowing, toEnd);
  useImperativeHandle(handle, () => ({
    top: () => ring.first + Math.floor(scroller.scrollTop / LINE_HEIGHT),
    show: (number) => {
      const middle = (scroller.clientHeight - LINE_HEIGHT) / 2;
      scroller.scrollTop = (number - ring.first) * LINE_HEIGHT - middle;
    },
  }));
  const numbers = Array.from({ length: drawn.end - drawn.start }, (_, index) => first + drawn.start + index);
  return (
    <div className="log-lines" style={{ height: length * LINE_HEIGHT, ...sourceColumn(ring) }}>
      <div className="log-block" style={{ transform: `translateY(${drawn.start * LINE_HEIGHT}px)` }}>
        {numbers.map((number) => {
          const line = ring.get(number);
          if (line === undefined) return null;
          return <LogLineView key={number} line={line} isCurrent={number === current} {...style} />;
        })}
      </div>
    </div>
  );
}
