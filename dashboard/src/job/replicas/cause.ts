import type { Replica } from "../../api/types";
import { attemptText } from "../timeline/rows";

/** Say why a replica is in its phase, or else how its latest attempt that did not succeed ended; empty if none did. */
export function causeText({ reason, message, attempts }: Replica): string {
  if (reason !== null || message !== null) return [reason, message].filter(Boolean).join(": ");
  const troubled = attempts.findLast(({ outcome }) => outcome === "Failed" || outcome === "Disrupted");
  return troubled === undefined ? "" : attemptText(troubled);
}
