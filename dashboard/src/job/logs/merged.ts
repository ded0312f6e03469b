import { replicaName } from "../names";
import { cutOffReason, type RawLine } from "./lines";

/** A line of a merged log: what a replica wrote, or why the gateway ends the log early. */
export type MergedEntry = { kind: "line"; line: RawLine } | { kind: "cutOff"; reason: string } | { kind: "none" };

/** Read a line of a merged log. A line of a kind that this page does not know is ignored. */
export function mergedEntry(text: string): MergedEntry {
  const { task, rank, attempt, at, line } = parsed(text);
  if (typeof line !== "string") return { kind: "none" };
  if (typeof task === "string" && typeof rank === "number") {
    const source = `${replicaName(task, rank)}${typeof attempt === "number" && attempt > 1 ? `#${attempt}` : ""}`;
    return { kind: "line", line: { source, at: typeof at === "string" ? at : null, raw: line } };
  }
  const reason = cutOffReason(line);
  return reason === null ? { kind: "none" } : { kind: "cutOff", reason };
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
