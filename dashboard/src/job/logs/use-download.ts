import { useEffect, useRef, useState } from "react";
import { usePage } from "../../page-context";
import { type Download, download } from "./download";

/** Return the download of a log, which ends when the component is no longer shown. */
export function useDownload(): {
  isBusy: boolean;
  error: Error | null;
  start: (request: Download) => void;
  cancel: () => void;
} {
  const { transport } = usePage().api;
  const running = useRef<AbortController | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (request: Download) => {
    const abort = new AbortController();
    running.current?.abort();
    running.current = abort;
    setBusy(true);
    setError(null);
    try {
      await download(transport, request, abort.signal);
    } catch (cause) {
      if (!abort.signal.aborted) setError(new Error(`The download is not complete: ${(cause as Error).message}`));
    }
    if (running.current === abort) setBusy(false);
  };
  return { isBusy, error, start: (request) => void start(request), cancel: () => running.current?.abort() };
}
