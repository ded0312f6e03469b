import { ArrowDown } from "lucide-react";
import { type RefObject, useRef, useState } from "react";
import { Button } from "react-aria-components";
import { FixedLines } from "./fixed-lines";
import type { LogFollower } from "./follower";
import type { LineStyle } from "./log-line";
import { WrappedLines } from "./wrapped-lines";

/** The distance from the end, in pixels, within which the reader is at the end. */
export const AT_END = 24;

export interface LogLinesHandle {
  /** The number of the first line in view. */
  top(): number;
  /** Show the line with this number in the middle. */
  show(number: number): void;
}

/** What draws the lines in a scroller. */
export interface DrawnLinesProps extends LineStyle {
  follower: LogFollower;
  scroller: HTMLElement;
  isFollowing: boolean;
  /** The number of the line that the search has reached. */
  current: number | null;
  handle: RefObject<LogLinesHandle | null>;
}

interface LogLinesProps extends Omit<DrawnLinesProps, "scroller"> {
  label: string;
  onFollow: (isFollowing: boolean) => void;
  isWrapped: boolean;
}

/**
 * The lines of a log, of which only those in view are rendered. The lines in view stay when older ones are dropped.
 *
 * While it follows the log, the end stays in view. It stops when the reader scrolls up, and goes on at the end.
 */
export function LogLines({ label, onFollow, isWrapped, ...lines }: LogLinesProps) {
  // The lines are drawn once the element is known whose position they read.
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const lastTop = useRef(0);
  const onScroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = scroller ?? {};
    const isUp = scrollTop < lastTop.current;
    lastTop.current = scrollTop;
    const isAtEnd = scrollHeight - scrollTop - clientHeight <= AT_END;
    if (isAtEnd && !isUp) onFollow(true);
    else if (isUp && !isAtEnd) onFollow(false);
  };
  const Drawn = isWrapped ? WrappedLines : FixedLines;
  return (
    <div className="scroll-frame">
      <div
        className="log-scroller"
        data-wrap={isWrapped || undefined}
        ref={setScroller}
        role="log"
        aria-label={label}
        // The state of the log is announced, not every line of it.
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        tabIndex={0}
        onScroll={onScroll}
        onWheel={(event) => event.deltaY < 0 && onFollow(false)}
      >
        {scroller !== null && <Drawn {...lines} scroller={scroller} />}
      </div>
      {!lines.isFollowing && (
        <Button className="button primary log-to-end" onPress={() => onFollow(true)}>
          <ArrowDown aria-hidden size={14} /> Jump to the end
        </Button>
      )}
    </div>
  );
}
