"""The status object as Paddle's operator declares it, including the fields that the operator never sets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.domain.kinds.job_kind import StatusFacts
from app.domain.kinds.training_job.plan import PSERVER_RESTART_LIMIT, TRAINERS_FAILED, pod_name, sizes
from app.domain.kinds.training_job.spec import TrainingJobSpec
from app.domain.kinds.training_job.templates import TRAINER
from app.domain.plan import Rank
from app.domain.status.failures import omitted_failures, with_details
from app.domain.status.records import JobStatus, Replica, ScaleRecord
from app.domain.vocabulary import JobPhase, Outcome, Reason, ReplicaPhase, ScaleOutcome

NONE, STARTING, RUNNING, FAILED, SUCCEEDED = "", "starting", "running", "failed", "succeeded"
_ENDS: Final[Mapping[JobPhase, str]] = {
    JobPhase.SUCCEEDED: "Succeed",
    JobPhase.FAILED: "Failed",
    JobPhase.CANCELLED: "Failed",
    JobPhase.TIMED_OUT: "Timeout",
}
_STATES: Final[Mapping[ReplicaPhase, str]] = {
    ReplicaPhase.PENDING: STARTING,
    ReplicaPhase.RUNNING: RUNNING,
    # Upstream has no state for a node that does not answer. The process may still run.
    ReplicaPhase.UNKNOWN: RUNNING,
    ReplicaPhase.SUCCEEDED: SUCCEEDED,
    ReplicaPhase.FAILED: FAILED,
}


def native_status(spec: TrainingJobSpec, trainers: int, job: str, facts: StatusFacts) -> dict[str, Any]:
    replicas = {replica.key: replica for replica in facts.replicas}
    started = facts.status.started_at
    return {
        "phase": native_phase(facts.status),
        "reason": _reason(spec, job, facts),
        "scale_records": {"ScaleRecords": [_scale(record) for record in facts.scale_records]},
        "replica_statuses": [
            _role(role, [replicas.get(Rank(role, rank)) for rank in range(count)], tolerant=spec.fault_tolerant)
            for role, count in sizes(spec, trainers).items()
        ],
        "startTime": _time(started) if started else None,
        "released": _is_released(facts),
    }


def native_phase(status: JobStatus) -> str:
    """Return the phase of upstream, which has none for a queued job and stays Running when pods are replaced."""
    if status.phase.is_terminal:
        return _ENDS[status.phase]
    if status.phase is JobPhase.SCALING:
        return "Scaling"
    if status.started_at is not None or status.phase is JobPhase.RUNNING:
        return "Running"
    return "" if status.phase is JobPhase.QUEUED else "Creating"


def _reason(spec: TrainingJobSpec, job: str, facts: StatusFacts) -> str:
    """Return upstream's sentence for a phase if it has one, otherwise the message of the status.

    The sentence about failed replicas continues with the pod, node, exit code and last words of each.
    """
    status = facts.status
    if status.phase is JobPhase.FAILED and status.reason == Reason.RULE_FULFILLED:
        return _failure(spec, job, facts)
    sentences = {
        JobPhase.RUNNING: "all pods are running",
        JobPhase.SCALING: "need scale",
        JobPhase.SUCCEEDED: "all trainer instances have done",
        JobPhase.TIMED_OUT: "timeout!",
    }
    return sentences.get(status.phase, status.message)


def _failure(spec: TrainingJobSpec, job: str, facts: StatusFacts) -> str:
    message = facts.status.message
    if message.startswith(PSERVER_RESTART_LIMIT):
        sentence = "Pserver reached to restart limit!"
    elif not message.startswith(TRAINERS_FAILED):
        return message
    else:
        sentence = f"{'all ' if spec.fault_tolerant else ''}trainer instances have failed"
    ended_by = facts.status.ended_by
    shown = [
        with_details(f"{pod_name(job, *failure.key)} on {failure.node or 'no node'}", failure)
        for failure in ended_by.first
    ]
    failures = ", ".join([*shown, *omitted_failures(ended_by)])
    if not failures:
        return sentence
    return f"{sentence} {failures}" if sentence.endswith("!") else f"{sentence}: {failures}"


def _scale(record: ScaleRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "scaleTimestamp": _time(record.requested_at),
        "additional": record.to_replicas - record.from_replicas,
        "status": "Unknown" if record.outcome is None else str(record.outcome is ScaleOutcome.REACHED),
    }
    if record.outcome not in (None, ScaleOutcome.REACHED):
        shown["reason"] = record.message or str(record.outcome)
    return shown


def _role(role: str, replicas: Sequence[Replica | None], *, tolerant: bool) -> dict[str, Any]:
    states = [_state(replica) for replica in replicas]
    return {
        "training_resource_type": role,
        "state": _common(states, tolerant=tolerant and role == TRAINER),
        "resource_states": dict(sorted(Counter(states).items())),
    }


def _common(states: Sequence[str], *, tolerant: bool) -> str:
    """Return the state of a role. A role fails with its first replica; fault tolerant trainers with the last one."""
    seen = set(states)
    if FAILED in seen and (not tolerant or seen == {FAILED}):
        return FAILED
    if seen <= {SUCCEEDED, FAILED}:
        return SUCCEEDED
    if NONE not in seen and STARTING not in seen:
        return RUNNING
    return NONE if seen == {NONE} else STARTING


def _state(replica: Replica | None) -> str:
    """Return the state of a replica. A disrupted replica without another attempt has failed; a stopped one has none."""
    if replica is None:
        return NONE
    attempt = replica.attempt
    if attempt.outcome is Outcome.DISRUPTED and replica.settled:
        return FAILED
    if replica.phase is ReplicaPhase.CREATING and attempt.pod_uid:
        return STARTING
    return _STATES.get(replica.phase, NONE)


def _is_released(facts: StatusFacts) -> bool:
    """Return whether the job has ended and no pod of it uses resources any more, including pods that leave."""
    over = all(replica.attempt.outcome is not None or replica.attempt.pod_uid is None for replica in facts.replicas)
    return facts.status.phase.is_terminal and over


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
