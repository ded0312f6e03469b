"""The decisions of `jobgate recover` about a recorded job. They change only the record.

The controller, which waits meanwhile, reconciles each live job when it continues: it follows the pods of adopted
attempts, replaces pods that are missing, and cleans up jobs that have ended.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from app.domain.plan import Rank
from app.domain.reconcile.endings import ended_status
from app.domain.reconcile.progress import next_transitions
from app.domain.reconcile.rules import Finish
from app.domain.reconcile.values import Decision
from app.domain.status.records import Attempt, HistoryEntry, JobStatus, Recorded, Replica
from app.domain.vocabulary import Evidence, JobPhase, Outcome, Reason, ReplicaPhase

NOT_RECORDED = "its end was recorded after the backup"
MISSING = "the cluster has no objects of this job, and the database does not know how they ended"


def end(recorded: Recorded, finish: Finish, attempts: Mapping[Rank, int], now: datetime) -> Decision:
    """Return the decision that ends a live job. Attempts that the cluster has are adopted."""
    before = recorded.status
    status = ended_status(before, finish, now)
    status = replace(status, transitions=next_transitions(before, status, now))
    ends = HistoryEntry(at=now, phase=status.phase, reason=status.reason, message=status.message)
    return _decision(recorded, status, attempts, now, ends)


def end_in_cluster(phase: JobPhase) -> Finish:
    message = f"the job ended in the cluster with the phase {phase}, after the backup of the database was made"
    return Finish(phase=phase, reason=Reason.ENDED_IN_CLUSTER, message=message)


def missing() -> Finish:
    return Finish(phase=JobPhase.FAILED, reason=Reason.OBJECTS_MISSING, message=MISSING)


def adopt(recorded: Recorded, attempts: Mapping[Rank, int], now: datetime) -> Decision:
    """Return the decision that records the later attempts of the cluster as the current ones."""
    return _decision(recorded, recorded.status, attempts, now)


def _decision(
    recorded: Recorded, status: JobStatus, attempts: Mapping[Rank, int], now: datetime, *entries: HistoryEntry
) -> Decision:
    later = {
        key: number
        for key, number in attempts.items()
        if key in recorded.replicas and number > recorded.replicas[key].attempt.number
    }
    adopted = {key: _adopt_attempt(recorded.replicas[key], number) for key, number in later.items()}
    return Decision(
        status=status,
        replicas={**recorded.replicas, **adopted},
        changed=tuple(adopted.values()),
        ended=tuple(
            (key, attempt)
            for key in adopted
            for attempt in _replaced_attempts(recorded.replicas[key].attempt, later[key])
        ),
        history=(*(_adoption(status, key, number, now) for key, number in later.items()), *entries),
        actions=(),
        wake_at=None,
        again=False,
        dirty=bool(adopted) or status != recorded.status,
    )


def _adopt_attempt(replica: Replica, number: int) -> Replica:
    # The restarts and disruptions between the two attempts are not known, so they do not count. What the pods of both
    # hold is one hold, which the usage of the job counts when it ends.
    hold = replica.attempt.hold if replica.attempt.outcome is None else None
    attempt = Attempt(number=number, hold=hold)
    return replace(replica, attempt=attempt, retry_at=None, settled=False, unreported=False)


def _replaced_attempts(recorded: Attempt, adopted: int) -> Iterator[Attempt]:
    """Yield what changes of the attempts before an adopted one. Those between the two have no record yet."""
    for attempt in (recorded, *(Attempt(number=number) for number in range(recorded.number + 1, adopted))):
        if attempt.outcome is None:
            yield _without_evidence(
                replace(
                    attempt,
                    phase=ReplicaPhase.DELETED,
                    outcome=Outcome.DISRUPTED,
                    reason=Reason.ADOPTED,
                    message=NOT_RECORDED,
                    hold=None,
                )
            )
        elif attempt.evidence is Evidence.NONE:
            yield _without_evidence(attempt)


def _without_evidence(attempt: Attempt) -> Attempt:
    return replace(attempt, evidence=Evidence.UNAVAILABLE, evidence_reason=NOT_RECORDED)


def _adoption(status: JobStatus, key: Rank, number: int, now: datetime) -> HistoryEntry:
    return HistoryEntry(
        at=now,
        phase=status.phase,
        reason=Reason.ADOPTED,
        message=f"{key} has attempt {number} in the cluster, which began after the backup of the database was made",
        key=key,
        attempt=number,
    )
