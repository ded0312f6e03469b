/** Return a duration as kubectl writes it: `45s`, `4m10s`, `3h5m`, `2d3h`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (minutes < 2) return `${seconds}s`;
  if (minutes < 10) return joined(minutes, "m", seconds % 60, "s");
  if (hours < 2) return `${minutes}m`;
  if (hours < 10) return joined(hours, "h", minutes % 60, "m");
  if (days < 2) return `${hours}h`;
  if (days < 10) return joined(days, "d", hours % 24, "h");
  return `${days}d`;
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** Return the time between two times of the API. `end` is null for what has not ended. */
export function elapsed(start: string | null, end: string | null, now: number): string {
  if (start === null) return "";
  return duration((end === null ? now : Date.parse(end)) - Date.parse(start));
}

/** Return a time of the API in the reader's language and time zone. */
export function localTime(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
