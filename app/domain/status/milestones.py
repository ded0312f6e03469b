"""The stages in the life of a job and their durations, which metrics report. A job ends each stage once at most.

It may wait in its queue and be evicted again and again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.domain.status.records import JobStatus


class Stage(StrEnum):
    """A stage in the life of a job. The comment names the event that ends it."""

    CREATION = "creation"  # every replica has a pod
    START = "start"  # the job runs
    RUN = "run"  # the job has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """The end of a stage, and its duration."""

    stage: Stage
    seconds: float


def milestones(before: JobStatus, after: JobStatus, created_at: datetime) -> Iterator[Milestone]:
    """Yield the stages that end with this change of the status. No later change of the job ends them again.

    A job can run before its last replica has a pod. Its stage START then begins with the submission.
    """
    initialized, started, finished = after.initialized_at, after.started_at, after.finished_at
    if initialized is not None and before.initialized_at is None:
        yield _milestone(Stage.CREATION, created_at, initialized)
    if started is not None and before.started_at is None:
        yield _milestone(Stage.START, initialized or created_at, started)
    if finished is not None and before.finished_at is None and started is not None:
        yield _milestone(Stage.RUN, started, finished)


def queue_wait(before: JobStatus, after: JobStatus) -> float | None:
    """Return how long the job has waited in its queue, in seconds, if this change of the status admits it."""
    queue = after.queueing
    if queue is None or queue.admitted_at is None or queue.queued_at is None:
        return None
    known = before.queueing.admitted_at if before.queueing is not None else None
    return None if known == queue.admitted_at else _seconds(queue.queued_at, queue.admitted_at)


def evictions(before: JobStatus, after: JobStatus) -> Iterator[str]:
    """Yield Kueue's reason for each eviction of the admitted job, or of a scale-up, that this change begins."""
    known, queue = before.queueing, after.queueing
    if known is None or known.admission is None or queue is None:
        return
    if queue.evicted_at != known.evicted_at:
        yield queue.evicted
    further = {item.number: item for item in queue.further}
    for item in known.further:
        present = further.get(item.number)
        if item.admitted and not item.evicted and present is not None and present.evicted:
            yield present.evicted


def _milestone(stage: Stage, since: datetime, until: datetime) -> Milestone:
    return Milestone(stage=stage, seconds=_seconds(since, until))


def _seconds(since: datetime, until: datetime) -> float:
    # Another process, whose clock differs, may have set the first time.
    return max(0.0, (until - since) / timedelta(seconds=1))
