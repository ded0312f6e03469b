import { useLayoutEffect } from "react";

/**
 * Scroll to the end whenever the size of the scroller changes, while it follows the log.
 *
 * A scroller that becomes lower keeps its position, so the end would leave the part in view.
 */
export function useEndInView(scroller: HTMLElement, isFollowing: boolean, toEnd: () => void): void {
  useLayoutEffect(() => {
    if (!isFollowing) return;
    const observer = new ResizeObserver(toEnd);
    observer.observe(scroller);
    return () => observer.disconnect();
  }, [scroller, isFollowing, toEnd]);
}
