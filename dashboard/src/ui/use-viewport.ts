import { useCallback, useLayoutEffect, useState } from "react";
import { flushSync } from "react-dom";
import type { Viewport } from "./rows-in-view";

/**
 * Return the part of a scrolling element that is in view, rounded to rows, and a function that reads it again after the
 * position was set.
 *
 * Rounding spares a render for each pixel. A scroll event renders at once: later, the browser would show empty rows.
 * While `isPinned`, the caller scrolls to the end itself, and only the height is read.
 */
export function useViewport(scroller: HTMLElement | null, rowHeight: number, isPinned = false): [Viewport, () => void] {
  const [viewport, setViewport] = useState<Viewport>({ top: 0, height: 0 });
  const read = useCallback(() => {
    const { scrollTop = 0, clientHeight = 0 } = scroller ?? {};
    const top = Math.floor(scrollTop / rowHeight) * rowHeight;
    const height = Math.ceil(clientHeight / rowHeight + 1) * rowHeight;
    setViewport((known) => (known.top === top && known.height === height ? known : { top, height }));
  }, [scroller, rowHeight]);
  useLayoutEffect(() => {
    if (scroller === null) return;
    const onScroll = () => !isPinned && flushSync(read);
    const observer = new ResizeObserver(read);
    read();
    observer.observe(scroller);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", onScroll);
    };
  }, [scroller, read, isPinned]);
  return [viewport, read];
}
