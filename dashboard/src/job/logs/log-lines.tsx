import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { type RefObject, useCallback, useEffect, useImperativeHandle, useRef } from "react";
import { Button } from "react-aria-components";
import { LogLineView } from "./log-line";
import type { LineRing } from "./ring";
import type { Matcher } from "./search";

/** The height of a line that is not wrapped, as in logs.css. */
const LINE_HEIGHT = 20;
/** The distance from the end, in pixels, within which the reader is at the end. */
const AT_END = 24;

export interface LogLinesHandle {
  /** The number of the first line in view. */
  top(): number;
  /** Show the line with this number in the middle. */
  show(number: number): void;
}

interface LogLinesProps {
  label: string;
  ring: LineRing;
  isFollowing: boolean;
  onFollow: (isFollowing: boolean) => void;
  isWrapped: boolean;
  hasTimes: boolean;
  matcher: Matcher | null;
  /** The number of the line that the search has reached. */
  current: number | null;
  handle: RefObject<LogLinesHandle | null>;
}

/**
 * The lines of a log, of which only those in view are rendered. The lines in view stay when older ones are dropped.
 *
 * While it follows the log, the end stays in view. It stops when the reader scrolls up, and goes on at the end.
 */
export function LogLines(props: LogLinesProps) {
  const { ring, isFollowing, onFollow, isWrapped } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const { first, length } = ring;
  const virtualizer = useVirtualizer({
    count: length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    getItemKey: useCallback((index: number) => first + index, [first]),
    overscan: 20,
    anchorTo: "end",
    followOnAppend: isFollowing,
    scrollEndThreshold: AT_END,
  });
  useImperativeHandle(props.handle, () => ({
    top: () => ring.first + (virtualizer.range?.startIndex ?? 0),
    show: (number) => virtualizer.scrollToIndex(number - ring.first, { align: "center" }),
  }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: measures again when lines are wrapped differently
  useEffect(() => virtualizer.measure(), [isWrapped]);
  useEffect(() => {
    if (isFollowing) virtualizer.scrollToEnd();
  }, [isFollowing, virtualizer]);
  const lastTop = useRef(0);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = scroller.current ?? {
      scrollTop: 0,
      scrollHeight: 0,
      clientHeight: 0,
    };
    const isUp = scrollTop < lastTop.current;
    lastTop.current = scrollTop;
    const isAtEnd = scrollHeight - scrollTop - clientHeight <= AT_END;
    if (isAtEnd && !isUp) onFollow(true);
    else if (isUp && !isAtEnd) onFollow(false);
  };
  return (
    <div className="log-frame">
      <div
        className="log-scroller"
        data-wrap={isWrapped || undefined}
        ref={scroller}
        role="log"
        aria-label={props.label}
        // The state of the log is announced, not every line of it.
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        tabIndex={0}
        onScroll={onScroll}
        onWheel={(event) => event.deltaY < 0 && onFollow(false)}
      >
        <div className="log-lines" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const number = first + item.index;
            const line = ring.get(number);
            if (line === undefined) return null;
            const isCurrent = number === props.current;
            return (
              <div
                key={number}
                data-index={item.index}
                ref={isWrapped ? virtualizer.measureElement : undefined}
                className={isCurrent ? "log-line is-current" : "log-line"}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <LogLineView line={line} hasTimes={props.hasTimes} matcher={props.matcher} isCurrent={isCurrent} />
              </div>
            );
          })}
        </div>
      </div>
      {!isFollowing && (
        <Button className="button primary log-to-end" onPress={() => onFollow(true)}>
          <ArrowDown aria-hidden size={14} /> Jump to the end
        </Button>
      )}
    </div>
  );
}
