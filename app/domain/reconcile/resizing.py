"""Resizes a job: which ranks join, which leave, and the outcome of scale records.

A recorded rank that the plan does not contain leaves the job. Its pod stops gracefully, no rule or restart limit counts
its end, and its record stays readable. If a later plan contains the rank again, the numbers of its attempts continue.
Its earlier restarts and failures no longer count, but an earlier success does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.domain.plan import Rank
from app.domain.reconcile.values import Inputs
from app.domain.status.observed import ObservedJob, RefusalVerdict
from app.domain.status.records import JobStatus, Recorded, Replica, ScaleRecord
from app.domain.vocabulary import Outcome, PendingCode, ReplicaPhase, ScaleOutcome, StopReason

# Refusals with a temporary cause. They are not the outcome of a scale request.
PASSING = frozenset(
    {
        PendingCode.PREVIOUS_OBJECTS,
        PendingCode.NAME_TERMINATING,
        PendingCode.CLUSTER_THROTTLED,
        PendingCode.CLUSTER_UNREACHABLE,
        PendingCode.CLUSTER_ERROR,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The replicas of a job in one reconcile: those of the plan, and those that leave or have left."""

    wanted: Mapping[Rank, Replica]
    leaving: Mapping[Rank, Replica]

    @property
    def all(self) -> Mapping[Rank, Replica]:
        return {**self.wanted, **self.leaving}

    def still_running(self) -> list[Replica]:
        """Return the replicas that leave and whose process may still run."""
        return [replica for replica in self.leaving.values() if not has_left(replica)]


def has_left(replica: Replica) -> bool:
    """Return whether no process of the replica runs any more, or none ever ran."""
    attempt = replica.attempt
    return attempt.outcome is not None or (attempt.pod_uid is None and attempt.phase is ReplicaPhase.DELETED)


def as_leaving(replica: Replica) -> Replica:
    """Return the replica of a rank that the plan no longer contains. Only a success remains final."""
    attempt = replica.attempt
    # From now on, the failure must not count: neither for a rule, nor as a restart if the rank comes back.
    if attempt.outcome in (Outcome.FAILED, Outcome.DISRUPTED) and attempt.stopping is None:
        attempt = replace(attempt, stopping=StopReason.SCALE_DOWN)
    return replace(replica, attempt=attempt, settled=attempt.outcome is Outcome.SUCCEEDED, leaving=True)


def as_wanted(replica: Replica) -> Replica:
    """Return the replica of a rank of the plan.

    A rank that had left starts again without restarts and without back-off.
    """
    if not replica.leaving:
        return replica
    return replace(replica, restarts=0, disruptions=0, retry_at=None, leaving=False)


def changes_size(recorded: Recorded, members: Members) -> bool:
    """Return whether a rank joins or begins to leave in this reconcile, in a job that has had replicas before."""
    before = recorded.replicas
    joins = any(key not in before or before[key].leaving for key in members.wanted)
    return bool(before) and (joins or any(not before[key].leaving for key in members.leaving))


def is_newcomer(replica: Replica) -> bool:
    """Return whether the replica has not run since it joined the job."""
    return replica.restarts == 0 and replica.disruptions == 0 and replica.attempt.started_at is None


def settled_records(inputs: Inputs, status: JobStatus, members: Members) -> tuple[ScaleRecord, ...]:
    """Return the scale records that get their outcome in this reconcile."""
    # Records are in the order of requests, so the last one of each task stays.
    newest = {record.task: record.seq for record in inputs.recorded.scaling}
    verdicts = (
        (record, _verdict(record, inputs.observed, status, members, newest)) for record in inputs.recorded.scaling
    )
    return tuple(_close(record, *verdict, inputs.now) for record, verdict in verdicts if verdict is not None)


def scaling_now(inputs: Inputs, status: JobStatus, members: Members, open_records: Sequence[ScaleRecord]) -> str | None:
    """Return a phrase about the resize that is in progress in a started job; None if there is none."""
    if status.started_at is None:
        return None
    requests = [f"{record.task} from {record.from_replicas} to {record.to_replicas}" for record in open_records]
    elastic = inputs.plan.elastic
    joining = sum(
        key.task in elastic and _has_yet_to_start(replica) and is_newcomer(replica)
        for key, replica in members.wanted.items()
    )
    leaving = len(members.still_running())
    parts = [*requests, *([f"{joining} to start"] if joining else []), *([f"{leaving} leaving"] if leaving else [])]
    return ", ".join(parts) or None


def _has_yet_to_start(replica: Replica) -> bool:
    return replica.attempt.outcome is None and replica.phase in (ReplicaPhase.CREATING, ReplicaPhase.PENDING)


def still_open(records: Iterable[ScaleRecord], settled: Iterable[ScaleRecord]) -> list[ScaleRecord]:
    closed = {record.seq for record in settled}
    return [record for record in records if record.seq not in closed]


def _close(record: ScaleRecord, outcome: ScaleOutcome, message: str, at: datetime) -> ScaleRecord:
    return replace(record, outcome=outcome, message=message, settled_at=at)


def _verdict(
    record: ScaleRecord, observed: ObservedJob, status: JobStatus, members: Members, newest: Mapping[str, int]
) -> tuple[ScaleOutcome, str] | None:
    if record.seq != newest[record.task]:
        return ScaleOutcome.REPLACED, "a newer request has replaced this one"
    if _is_reached(record, members):
        return ScaleOutcome.REACHED, _reached_message(record, members)
    if status.phase.is_terminal:
        return ScaleOutcome.JOB_ENDED, f"the job ended as {status.phase} before the size was reached"
    # The cluster cannot refuse a deletion, so refusals concern other requests.
    if _scales_down(record):
        return None
    refusal = _refusal(record.task, observed, members)
    return (ScaleOutcome.REFUSED, refusal) if refusal is not None else None


def _scales_down(record: ScaleRecord) -> bool:
    return record.to_replicas < record.from_replicas


def _is_reached(record: ScaleRecord, members: Members) -> bool:
    """Return whether the request of a scale record has been fulfilled.

    A request to scale down is fulfilled when the replicas beyond its size are gone. A remaining replica that has not
    started does not matter: it belongs to an earlier request to scale up.
    """
    of_task = _of_task(record, members)
    if len(of_task) != record.to_replicas:
        return False
    gone = all(has_left(replica) for key, replica in members.leaving.items() if key.task == record.task)
    return gone and (_scales_down(record) or all(_is_there(replica) for replica in of_task))


def _of_task(record: ScaleRecord, members: Members) -> list[Replica]:
    return [replica for key, replica in members.wanted.items() if key.task == record.task]


def _reached_message(record: ScaleRecord, members: Members) -> str:
    waiting = sum(not _is_there(replica) for replica in _of_task(record, members))
    if not waiting:
        return f"{record.to_replicas} replicas are running or done"
    return f"the replicas beyond {record.to_replicas} are gone, and {waiting} of the remaining ones have not started"


def _is_there(replica: Replica) -> bool:
    """Return whether the replica runs, or has ended for good without being stopped."""
    runs = replica.phase is ReplicaPhase.RUNNING and replica.attempt.stopping is None
    return runs or (replica.settled and replica.attempt.outcome is not Outcome.STOPPED)


def _refusal(task: str, observed: ObservedJob, members: Members) -> str | None:
    refusals = [refusal for key, refusal in observed.refusals.items() if key.task == task and key in members.wanted]
    refusals += [observed.job_refusal] if observed.job_refusal else []
    final = (
        refusal for refusal in refusals if refusal.verdict is not RefusalVerdict.WAIT and refusal.code not in PASSING
    )
    return next((f"{refusal.code}: {refusal.message}" for refusal in final), None)
