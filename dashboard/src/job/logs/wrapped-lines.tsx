import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useImperativeHandle } from "react";
import { useStore } from "../../live/store";
import { LogLineView, sourceColumn } from "./log-line";
import { AT_END, type DrawnLinesProps } from "./log-lines";
import { useEndInView } from "./use-end-in-view";

/** The height of a line before it is measured. */
const ESTIMATED_HEIGHT = 20;

/** Lines that are wrapped, and therefore measured. */
export function WrappedLines({ follower, scroller, isFollowing, current, handle, ...style }: DrawnLinesProps) {
  useStore(follower.version);
  const { ring } = follower;
  const { first, length } = ring;
  const virtualizer = useVirtualizer({
    count: length,
    getScrollElement: () => scroller,
    estimateSize: () => ESTIMATED_HEIGHT,
    getItemKey: useCallback((index: number) => first + index, [first]),
    overscan: 20,
    anchorTo: "end",
    followOnAppend: isFollowing,
    scrollEndThreshold: AT_END,
  });
  useEffect(() => {
    if (isFollowing) virtualizer.scrollToEnd();
  }, [isFollowing, virtualizer]);
  const toEnd = useCallback(() => virtualizer.scrollToEnd(), [virtualizer]);
  useEndInView(scroller, isFollowing, toEnd);
  useImperativeHandle(handle, () => ({
    top: () => ring.first + (virtualizer.range?.startIndex ?? 0),
    show: (number) => virtualizer.scrollToIndex(number - ring.first, { align: "center" }),
  }));
  return (
    <div className="log-lines" style={{ height: virtualizer.getTotalSize(), ...sourceColumn(ring) }}>
      {virtualizer.getVirtualItems().map((item) => {
        const number = first + item.index;
        const line = ring.get(number);
        if (line === undefined) return null;
        return (
          <div
            key={number}
            className="log-block"
            data-index={item.index}
            ref={virtualizer.measureElement}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            <LogLineView line={line} isCurrent={number === current} {...style} />
          </div>
        );
      })}
    </div>
  );
}
