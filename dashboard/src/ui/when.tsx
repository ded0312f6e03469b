import { elapsed, localTime } from "./durations";
import { useNow } from "./now";

/** A time of the API as its age, with the time itself in the title. */
export function When({ time }: { time: string | null }) {
  const now = useNow();
  if (time === null) return "–";
  return (
    <time dateTime={time} title={localTime(time)}>
      {elapsed(time, null, now)} ago
    </time>
  );
}

/** The time between two times of the API; it grows while `end` is null. */
export function Length({ start, end }: { start: string | null; end: string | null }) {
  const now = useNow();
  return start === null ? "–" : elapsed(start, end, now);
}

/** How long ago the object was submitted, in the least space. */
export function Age({ createdAt }: { createdAt: string }) {
  const now = useNow();
  return (
    <time dateTime={createdAt} title={localTime(createdAt)}>
      {elapsed(createdAt, null, now)}
    </time>
  );
}
