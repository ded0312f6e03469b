import type { Job } from "../api/types";
import { hashOf } from "../routing/location";
import { PhaseBadge } from "../ui/phases";
import { When } from "../ui/when";
import { JobActions } from "./actions/job-actions";
import { CopyButton } from "./copy-button";

/** What identifies the job, its phase, and what the user can do with it. */
export function JobHeader({ job, etag }: { job: Job; etag: string }) {
  const namespace = new URLSearchParams({ namespace: job.namespace });
  return (
    <header className="job-header">
      <div className="job-title">
        <h1>{job.name}</h1>
        <PhaseBadge phase={job.status.phase} />
      </div>
      <JobActions job={job} etag={etag} />
      <p className="job-identity secondary">
        <span>
          {job.kind} in <a href={hashOf(["jobs"], namespace)}>{job.namespace}</a>
        </span>
        <span className="job-uid">
          <code>{job.uid}</code>
          <CopyButton text={job.uid} what="uid" isSmall />
        </span>
      </p>
      {job.deletedAt === null && job.status.stillRunning > 0 && (
        <p className="note tone-changing" role="status">
          <span>
            {job.status.stillRunning === 1
              ? "1 replica of this job still runs"
              : `${job.status.stillRunning} replicas of this job still run`}
            , although the job has ended: its clean-up policy keeps them. Cancel the job to stop them.
          </span>
        </p>
      )}
      {job.importedAt !== null && (
        <p className="note tone-neutral job-imported">
          <span>
            This record was imported from an export <When time={job.importedAt} />. It is for reading: the job ran
            before, and nothing of it is in the cluster. A retry submits it as a new job.
          </span>
        </p>
      )}
      {job.deletedAt !== null && (
        <p className="note tone-neutral job-deleted">
          <span>
            This job was deleted <When time={job.deletedAt} />. Its record, history and stored logs remain; its objects
            in the cluster do not.
          </span>
        </p>
      )}
    </header>
  );
}
