import type { WaitingJob } from "../api/types";
import { hashOf } from "../routing/location";

/** The jobs that wait because the cluster has too little room. */
export function Waiting({ jobs }: { jobs: readonly WaitingJob[] }) {
  if (jobs.length === 0) return <p className="secondary">No job waits for room.</p>;
  return (
    <ul>
      {jobs.map((job) => (
        <li key={job.uid}>
          <a href={hashOf(["jobs", job.uid])}>{job.name}</a> <span className="secondary">{job.namespace}</span>
        </li>
      ))}
    </ul>
  );
}
