"""The decision about a job whose state cannot be determined: the phase Unknown, with the reason."""

from dataclasses import replace
from datetime import datetime, timedelta

from app.db.jobs.controller import StoredJob
from app.domain.reconcile.values import Decision
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import JobPhase, Reason

UNKNOWN_PAUSE = timedelta(minutes=1)  # a new version of jobgate may be able to reconcile the job and store the decision


def unknown(job: StoredJob, reason: Reason, error: str, now: datetime) -> Decision:
    """Return the decision to store if no decision can be made, or if Postgres cannot hold it."""
    recorded = job.recorded
    status = recorded.status
    history: tuple[HistoryEntry, ...] = ()
    if not status.phase.is_terminal:
        status = replace(status, phase=JobPhase.UNKNOWN, reason=reason, message=error)
        # Only the first time: the job is tried every minute, and each history row would repeat the error.
        if recorded.status.reason != reason:
            history = (HistoryEntry(at=now, phase=status.phase, reason=status.reason, message=error),)
    return Decision(
        status=status,
        replicas=recorded.replicas,
        changed=(),
        ended=(),
        history=history,
        actions=(),
        wake_at=now + UNKNOWN_PAUSE,
        again=False,
        # A try that changes nothing increases no version and wakes no watch.
        dirty=status != recorded.status,
    )
