import type { Transport } from "../../api/transport";
import { fileName, logPath } from "./log-request";
import type { Target } from "./selection";

export interface Download {
  uid: string;
  /** The name of the job. */
  job: string;
  target: Target;
  hasTimes: boolean;
}

/** Save the whole log as a text file, not only the lines that the page keeps. */
export async function download(transport: Transport, request: Download, signal: AbortSignal): Promise<void> {
  const { uid, target, hasTimes } = request;
  const path = logPath(uid, target, { follow: false, tailLines: null, sinceTime: null, timestamps: hasTimes });
  const response = await transport.get(path, { Accept: "text/plain" }, signal);
  save(await response.blob(), fileName(request.job, target));
}

function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read the content when the event of the click has been handled.
  setTimeout(() => URL.revokeObjectURL(address), 0);
}
