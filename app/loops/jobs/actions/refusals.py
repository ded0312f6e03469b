"""Keeps why the cluster refuses the objects of a job, and when their creates are repeated."""

from dataclasses import replace

import structlog

from app.base.backoff import ExponentialBackoff
from app.base.clock import Clock
from app.domain.plan import Rank
from app.domain.status.altered_objects import UnusableObject
from app.domain.status.observed import ClusterRefusal, RefusalVerdict
from app.domain.status.refusal_messages import refusal_message
from app.domain.status.refusals import judge
from app.domain.vocabulary import PendingCode
from app.k8s.errors import KubeError, KubeStatusError
from app.loops import metrics
from app.loops.jobs.actions.work import Work
from app.loops.jobs.expectations import Expectations

log = structlog.get_logger(__name__)

REFUSED_BACKOFF = ExponentialBackoff(first=1.0, longest=60.0)  # seconds between tries of a create that is refused
# An outage ends without a change of the job, so its end is noticed soon.
OUTAGE_BACKOFF = ExponentialBackoff(first=1.0, longest=5.0)
OUTAGES = frozenset({PendingCode.CLUSTER_UNREACHABLE, PendingCode.CLUSTER_ERROR, PendingCode.CLUSTER_THROTTLED})


class Refusals:
    """Notes refusals in the expectations of jobs. A key is a replica, or None for the objects of the whole job."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Before the first refusal, for the alert on it: Prometheus sees no increase in a series that begins with 1.
        metrics.REFUSED.labels(PendingCode.CLUSTER_DENIED)

    def is_due(self, expectations: Expectations, key: Rank | None) -> bool:
        """Return whether an object of the replica, or of the job, may be created, or must wait for its back-off."""
        altered = expectations.altered.get(key)
        # One object at a time: only the last altered one is remembered.
        if altered is not None and not altered.removed:
            return False
        return expectations.retry_at.get(key, 0.0) <= self._clock.monotonic()

    def note_unusable(self, work: Work, key: Rank | None, unusable: UnusableObject) -> None:
        """Remember that an object cannot be created or used. The create is repeated after a back-off."""
        log.info("create.unusable", replica=str(key), verdict=unusable.verdict, code=unusable.code)
        refusal = ClusterRefusal(
            verdict=unusable.verdict, code=unusable.code, message=unusable.message, since=self._clock.now()
        )
        self._note(work.expectations, key, refusal)

    def note_error(self, work: Work, key: Rank | None, error: KubeError) -> None:
        """Remember why the cluster refuses an object, or does not answer. The create is repeated after a back-off."""
        self._note(work.expectations, key, self._report(work, key, error))

    def note_change(self, work: Work, error: KubeError) -> None:
        """Remember why the cluster refuses a change of an object of the job. The change is always repeated."""
        refusal = self._report(work, None, error)
        self._note(work.expectations, None, replace(refusal, verdict=RefusalVerdict.RETRY))

    def _report(self, work: Work, key: Rank | None, error: KubeError) -> ClusterRefusal:
        """Log and count the refusal, and return what it means."""
        if isinstance(error, KubeStatusError):
            verdict, code = judge(
                error.status,
                error.reason,
                error.message,
                [(cause.reason, cause.message) for cause in error.causes],
                seen_before=work.established,
            )
            status, message = error.status, error.message
        else:
            verdict, code = RefusalVerdict.RETRY, PendingCode.CLUSTER_UNREACHABLE
            status, message = None, str(error)
        message = refusal_message(code, status, message, work.plan.identity.namespace)
        metrics.REFUSED.labels(code).inc()
        log.info("write.refused", replica=str(key), verdict=verdict, code=code, error=str(error))
        return ClusterRefusal(verdict=verdict, code=code, message=message, since=self._clock.now())

    def _note(self, expectations: Expectations, key: Rank | None, refusal: ClusterRefusal) -> None:
        """Remember a refusal. A repeated one keeps its first moment, and the wait before the next try is longer."""
        before = expectations.job_refusal if key is None else expectations.refusals.get(key)
        if before is not None and (before.code, before.message) == (refusal.code, refusal.message):
            refusal = before
        if key is None:
            expectations.job_refusal = refusal
        else:
            expectations.refusals[key] = refusal
        expectations.tries[key] = expectations.tries.get(key, 0) + 1
        # The same refusal again changes no decision, so it causes no reconcile.
        expectations.revision += before is not refusal
        backoff = OUTAGE_BACKOFF if refusal.code in OUTAGES else REFUSED_BACKOFF
        expectations.retry_at[key] = self._clock.monotonic() + backoff.delay(expectations.tries[key])
