"""Text about queues. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobgate.cli.rendering.tables import age, clock, shorten, table
from jobgate.client.types import Eviction, Job, JobQueue, Queueing, Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a user may see around a job with a queue: the queue itself, and the job that preempted it."""

    queue: JobQueue | None = None
    preemptor: Job | None = None


NO_SURROUNDINGS = Surroundings()


def queue_lines(job: Job, queue: Queueing, around: Surroundings, now: datetime) -> list[str]:
    """Return the queue of a job with its admission, its position and its last eviction."""
    lines = [f"{queue.name} ({_admission(queue, now)})"]
    if around.queue is not None and (position := position_text(around.queue, job.uid)):
        lines.append(position)
    if queue.eviction is not None:
        lines += _eviction_lines(queue.eviction, now, around.preemptor)
    return lines


def _admission(queue: Queueing, now: datetime) -> str:
    if queue.admitted:
        return "admitted" if queue.admitted_at is None else f"admitted {clock(queue.admitted_at)}"
    return "not admitted" if queue.queued_at is None else f"not admitted, waits for {age(queue.queued_at, now)}"


def _eviction_lines(eviction: Eviction, now: datetime, preemptor: Job | None) -> list[str]:
    since = "" if eviction.at is None else f" {age(eviction.at, now)} ago"
    lines = [f"evicted{since}: {shorten(f'{eviction.reason}: {eviction.message}')}"]
    if preemptor is not None:
        lines.append(f"preempted by {preemptor.kind} {preemptor.namespace}/{preemptor.name}")
    return lines


def position_text(queue: JobQueue, uid: str) -> str:
    """Return the position of a job that waits; empty if it is not known."""
    for number, job in enumerate(queue.pending_jobs, 1):
        if job.uid == uid:
            if job.position is not None:
                return f"position {job.position} in the ClusterQueue {queue.cluster_queue}"
            count = len(queue.pending_jobs) + queue.pending_jobs_omitted
            return f"position {number} of {count} in this queue, by priority and age"
    return f"after the first {len(queue.pending_jobs)}" if queue.pending_jobs_omitted else ""


def queues_text(queues: Sequence[JobQueue], *, all_namespaces: bool = False, wide: bool = False) -> str:
    """Return the table of `jobgate queues`."""
    header = [
        *(["NAMESPACE"] if all_namespaces else []),
        *("NAME", "CLUSTER QUEUE", "ACTIVE", "PENDING", "ADMITTED", "IN USE"),
        *(["MESSAGE"] if wide else []),
    ]
    rows = [
        [
            *([queue.namespace] if all_namespaces else []),
            *(queue.name, queue.cluster_queue, "yes" if queue.active else "no"),
            *(str(queue.pending), str(queue.admitted), _in_use(queue.resources)),
            *([queue.message] if wide else []),
        ]
        for queue in queues
    ]
    return table(header, rows)


def _in_use(resources: Sequence[Quota]) -> str:
    """Return how much of the quota of each resource all queues of the ClusterQueue use."""
    several = len({quota.flavor for quota in resources}) > 1
    shown = (
        f"{quota.resource}{f'@{quota.flavor}' if several else ''} {quota.used or '?'}/{quota.nominal_quota or '?'}"
        for quota in resources
    )
    return ", ".join(shown) or "-"


def queue_text(queue: JobQueue, now: datetime, width: int | None = None) -> str:
    """Return the text of `jobgate queues NAME`: its quota, and the jobs that wait, on lines of this width."""
    state = "active" if queue.active else f"not active: {queue.message}".removesuffix(": ")
    about = [
        f"Queue:         {queue.namespace}/{queue.name} ({state})",
        f"ClusterQueue:  {queue.cluster_queue}" + (f" (cohort {queue.cohort})" if queue.cohort else ""),
        f"Workloads:     {queue.pending} pending, {queue.admitted} admitted",
    ]
    sections = ["\n".join(about)]
    if queue.resources:
        sections.append(_quotas(queue))
    sections.append(_pending(queue, now, width))
    return "\n\n".join(sections)


def _quotas(queue: JobQueue) -> str:
    """Return the table of the quota; in a cohort, also with what the ClusterQueue can still use."""
    header = ["RESOURCE", "FLAVOR", "QUOTA", "USED", "USED HERE", *(["FREE IN COHORT"] if queue.cohort else [])]
    rows = [
        [
            *(quota.resource, quota.flavor),
            *(amount or "-" for amount in (quota.nominal_quota, quota.used, quota.used_by_queue)),
            *([quota.cohort_free or "-"] if queue.cohort else []),
        ]
        for quota in queue.resources
    ]
    return table(header, rows)


def _pending(queue: JobQueue, now: datetime, width: int | None) -> str:
    if not queue.pending_jobs:
        return "no job waits"
    rows = [
        [
            str(job.position or "-"),
            *(job.name, job.kind, str(job.priority), age(job.since, now)),
            shorten(f"{job.code}: {job.message}"),
        ]
        for job in queue.pending_jobs
    ]
    text = table(["POSITION", "JOB", "KIND", "PRIORITY", "WAITS", "WHY"], rows, width=width)
    return text + (f"\nand {queue.pending_jobs_omitted} more" if queue.pending_jobs_omitted else "")
