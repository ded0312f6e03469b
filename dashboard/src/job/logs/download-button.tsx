import { Download } from "lucide-react";
import { Button } from "react-aria-components";
import type { Job } from "../../api/types";
import { ErrorNote } from "../../ui/errors";
import type { Target } from "./selection";
import { useDownload } from "./use-download";

/** Saves the whole log as a file. */
export function DownloadButton({ job, target, hasTimes }: { job: Job; target: Target; hasTimes: boolean }) {
  const { isBusy, error, start, cancel } = useDownload();
  const request = { uid: job.uid, job: job.name, target, hasTimes };
  return (
    <>
      <Button className="button" onPress={() => (isBusy ? cancel() : start(request))}>
        <Download aria-hidden size={14} /> {isBusy ? "Cancel the download" : "Download"}
      </Button>
      {error !== null && <ErrorNote error={error} />}
    </>
  );
}
