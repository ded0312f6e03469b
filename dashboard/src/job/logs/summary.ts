import { thousands } from "../../ui/numbers";
import type { Tone } from "../../ui/phases";
import type { LogState } from "./follower";
import { MOST_LINES } from "./ring";

export interface Summary {
  tone: Tone;
  /** The state of the log, in a few words. */
  state: string;
  /** What the reader must know about missing lines; each is a sentence. */
  notes: readonly string[];
}

type Facts = Pick<LogState, "phase" | "source" | "interruption" | "leftOut" | "hasGap"> & {
  /** The number of lines that the page no longer keeps. */
  dropped: number;
};

/** Say where a log comes from, whether it goes on, and what is missing. */
export function summaryOf(facts: Facts): Summary {
  return { ...stateOf(facts), notes: notesOf(facts) };
}

function stateOf({ phase, source }: Facts): { tone: Tone; state: string } {
  switch (phase) {
    case "connecting":
      return { tone: "neutral", state: "Connecting…" };
    case "open":
      return { tone: "running", state: "Live" };
    case "interrupted":
      return { tone: "unknown", state: "Interrupted" };
    case "waiting":
      return { tone: "waiting", state: "Not started" };
    case "failed":
      return { tone: "failed", state: "Not available" };
    case "ended":
      return source?.isLive === false ? { tone: "neutral", state: "Stored" } : { tone: "neutral", state: "Ended" };
  }
}

function notesOf({ phase, source, interruption, leftOut, hasGap, dropped }: Facts): string[] {
  const notes: string[] = [];
  if (source?.isLive === false) {
    notes.push(
      source.isTruncated
        ? "This is the end of the log, stored when the attempt ended. Its earlier lines were not stored."
        : "This is the whole log, stored when the attempt ended.",
    );
  }
  if (source?.missing) notes.push(`The kept log is not whole: ${source.missing}.`);
  if (interruption !== null && phase !== "failed") {
    notes.push(`The log was interrupted: ${interruption}. The page continues it as soon as it can.`);
  }
  if (hasGap) notes.push("Lines may be missing or repeated where the log was interrupted.");
  if (leftOut !== "") notes.push(`These replicas are left out: ${leftOut}. Choose one of them to read its log.`);
  if (dropped > 0) {
    notes.push(
      `The page keeps the last ${thousands(MOST_LINES)} lines, or fewer long ones: it has dropped at least ` +
        `${thousands(dropped)} earlier ${dropped === 1 ? "line" : "lines"}. ` +
        (source?.isKept ? "The whole log and the download have them." : "The download has them."),
    );
  }
  return notes;
}
