import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../../api/client";
import type { Job, Queueing } from "../../api/types";
import { usePage } from "../../page-context";
import { positionText } from "../../queues/queues";
import { useQueue } from "../../queues/use-queues";
import { hashOf } from "../../routing/location";
import { Fact, Facts } from "../../ui/fact";
import { When } from "../../ui/when";
import { hasEnded } from "../names";

/** The queue of the job: whether it is admitted, otherwise its position, and who took its admission. */
export function QueueSection({ job, queue }: { job: Job; queue: Queueing }) {
  const waits = !queue.admitted && !hasEnded(job);
  return (
    <section aria-labelledby="job-queue">
      <h2 id="job-queue">Queue</h2>
      <Facts>
        <Fact name="Queue">
          <a href={hashOf(["queues", job.namespace, queue.name])}>{queue.name}</a>
        </Fact>
        <Fact name="Admission">
          <Admission queue={queue} />
        </Fact>
        {waits && (
          <Fact name="Position">
            <Position job={job} name={queue.name} />
          </Fact>
        )}
        {queue.eviction !== null && (
          <Fact name="Last eviction">
            {queue.eviction.at !== null && (
              <>
                <When time={queue.eviction.at} />,{" "}
              </>
            )}
            <strong>{queue.eviction.reason}</strong>: {queue.eviction.message}
          </Fact>
        )}
        {queue.eviction !== null && queue.eviction.preemptedBy !== null && (
          <Fact name="Preempted by">
            <Preemptor uid={queue.eviction.preemptedBy} />
          </Fact>
        )}
      </Facts>
    </section>
  );
}

function Admission({ queue: { admitted, admittedAt, queuedAt } }: { queue: Queueing }) {
  const since = admitted ? admittedAt : queuedAt;
  const text = admitted ? "admitted" : "not admitted";
  if (since === null) return text;
  return (
    <>
      {text}
      {admitted ? " " : ", queued "}
      <When time={since} />
    </>
  );
}

/** The position of a job that waits, as far as Kueue tells it. */
function Position({ job, name }: { job: Job; name: string }) {
  const { data, error } = useQueue(job.namespace, name);
  if (error !== null) return "not known";
  return data === undefined ? "…" : positionText(data, job.uid);
}

/** The job that needed the quota, if the user may see it. */
function Preemptor({ uid }: { uid: string }) {
  const { client } = usePage().api;
  const { data } = useQuery({
    queryKey: ["job-name", uid],
    queryFn: async ({ signal }) =>
      bodyOf(await client.GET("/api/v1/jobs/{uid}/status", { params: { path: { uid } }, signal })),
  });
  if (data === undefined) return <code>{uid}</code>;
  return (
    <>
      <a href={hashOf(["jobs", uid])}>{data.name}</a> <span className="secondary">{data.namespace}</span>
    </>
  );
}
