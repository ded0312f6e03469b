"""Measures jobs: what they have reached, and how long changes of their pods take from the watch to PostgreSQL."""

from app.base.clock import Clock
from app.db.jobs.controller import StoredJob
from app.domain.status.milestones import evictions, milestones, queue_wait
from app.domain.status.records import JobStatus
from app.loops import metrics


def measure(job: StoredJob, stored: JobStatus) -> None:
    """Measure what the job has reached with the status that has just been stored.

    PostgreSQL accepts one successor of each status, so no controller measures a job twice.
    """
    before = job.recorded.status
    for milestone in milestones(before, stored, job.created_at):
        metrics.MILESTONES[milestone.stage].labels(job.kind).observe(milestone.seconds)
    if stored.phase.is_terminal and not before.phase.is_terminal:
        metrics.ENDED.labels(metrics.NAMESPACES.label(job.namespace), job.kind, stored.phase).inc()
    if stored.queueing is not None and (waited := queue_wait(before, stored)) is not None:
        metrics.QUEUE_DURATION.labels(*metrics.queue_labels(job.namespace, stored.queueing.name)).observe(waited)
    for reason in evictions(before, stored):
        metrics.EVICTIONS.labels(metrics.EVICTION_REASONS.label(reason)).inc()


class ChangeLag:
    """Measures the time from the first change of a job's pods to the stored decision that observes it.

    If a decision cannot be stored, the changes that it has observed belong to the next one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unobserved: dict[str, float] = {}
        self._observed: dict[str, float] = {}

    def changed(self, uid: str) -> None:
        """Note that a pod of the job has changed."""
        self._unobserved.setdefault(uid, self._clock.monotonic())

    def observed(self, uid: str) -> None:
        """Note that a reconcile of the job reads the mirror."""
        since = self._unobserved.pop(uid, None)
        if since is not None:
            self._observed.setdefault(uid, since)

    def stored(self, uid: str) -> None:
        """Note that the decision of the last reconcile is stored."""
        since = self._observed.pop(uid, None)
        if since is not None:
            metrics.MIRROR_LAG.observe(self._clock.monotonic() - since)

    def forget(self, uid: str) -> None:
        """Forget a job that does not change any more."""
        self._unobserved.pop(uid, None)
        self._observed.pop(uid, None)
