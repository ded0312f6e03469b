/** The progress of operations on a sample set. Pure. */
import type { SampleJobSummary } from "../api/types";
import { sizeText } from "./sizes";

export type Progress = NonNullable<SampleJobSummary["status"]["progress"]>;

const NUMBERS = new Intl.NumberFormat("en");

/** Return which share of the files is done, from 0 to 1; null if it is not known. */
export function doneShare({ filesDone, filesTotal }: Progress): number | null {
  if (filesDone === null || filesTotal === null || filesTotal === 0) return null;
  return Math.min(1, filesDone / filesTotal);
}

/** Say how far an operation is: `20,480 of 1,281,167 files, 1 %`. Without a total, it gives no share. */
export function progressText(progress: Progress): string {
  const { filesDone, filesTotal, bytesDone, servers, serversReporting } = progress;
  const share = doneShare(progress);
  const parts = [filesText(filesDone, filesTotal)];
  if (bytesDone !== null) parts.push(sizeText(bytesDone));
  if (share !== null) parts.push(`${Math.floor(share * 100)} %`);
  if (serversReporting < servers) parts.push(`as ${serversReporting} of ${servers} servers report`);
  return parts.join(", ");
}

function filesText(done: number | null, total: number | null): string {
  if (done === null) return total === null ? "files are not counted" : `of ${NUMBERS.format(total)} files`;
  const unit = (total ?? done) === 1 ? "file" : "files";
  return total === null
    ? `${NUMBERS.format(done)} ${unit}`
    : `${NUMBERS.format(done)} of ${NUMBERS.format(total)} ${unit}`;
}
