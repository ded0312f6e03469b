import { useEffect } from "react";
import { Store, useStore } from "../live/store";

const now = new Store(Date.now());
let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Return the time in milliseconds. It changes once a second, for all components together. */
export function useNow(): number {
  useEffect(() => {
    users += 1;
    timer ??= setInterval(() => now.set(Date.now()), 1000);
    return () => {
      users -= 1;
      if (users === 0) {
        clearInterval(timer);
        timer = undefined;
      }
    };
  }, []);
  return useStore(now);
}
