import { CircleAlert, CircleCheck, Clock, WifiOff } from "lucide-react";
import { type Freshness, freshnessAt } from "../live/freshness";
import { useContact } from "../page-context";
import { duration } from "./durations";
import { useNow } from "./now";

const LOOKS = {
  live: ["succeeded", CircleCheck],
  behind: ["waiting", Clock],
  stale: ["unknown", CircleAlert],
  offline: ["failed", WifiOff],
} as const;

/** Say how fresh the data of the page is. */
export function freshnessText(freshness: Freshness, now: number): string {
  switch (freshness.level) {
    case "live":
      return "Live";
    case "behind":
      return `${freshness.seconds} s behind`;
    case "stale": {
      const age = freshness.seconds === null ? "" : ` for ${duration(freshness.seconds * 1000)}`;
      return `Stale${age}: ${freshness.reason || "the controller has no contact with the cluster"}`;
    }
    case "offline":
      return `Offline for ${duration(now - freshness.since)}: the gateway does not answer`;
  }
}

export function FreshnessIndicator() {
  const contact = useContact();
  const now = useNow();
  const freshness = freshnessAt(contact, now);
  const [tone, Icon] = LOOKS[freshness.level];
  const announced = freshness.level === "live" || freshness.level === "behind" ? "" : freshnessText(freshness, now);
  return (
    <>
      <span className={`badge freshness tone-${tone}`} data-level={freshness.level}>
        <Icon aria-hidden size={14} />
        {freshnessText(freshness, now)}
      </span>
      {/* Screen readers hear only that the level changed, not every second of it. */}
      <span className="visually-hidden" role="status">
        {announced === "" ? "" : LEVELS[freshness.level]}
      </span>
    </>
  );
}

const LEVELS = { live: "", behind: "", stale: "The data is stale.", offline: "The gateway does not answer." } as const;
