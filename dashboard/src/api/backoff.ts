/** Return the milliseconds to wait after this many failures: doubled each time, with half of it random. */
export function backoff(failures: number, random: () => number = Math.random): number {
  const longest = Math.min(10_000, 500 * 2 ** Math.max(0, failures - 1));
  return longest / 2 + (random() * longest) / 2;
}

/** Resolve after `milliseconds`, or at once when the signal is aborted. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    signal.addEventListener("abort", finish, { once: true });
    if (signal.aborted) finish();
  });
}
