"""The status object in the format of DI-orchestrator."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from app.domain.kinds.di_job.environment import pod_name
from app.domain.kinds.job_kind import StatusFacts
from app.domain.status.failures import list_failures
from app.domain.status.records import JobStatus, Replica, Transition
from app.domain.vocabulary import JobPhase, Reason, ReplicaPhase

PENDING: Final = "Pending"
STARTING: Final = "Starting"
RESTARTING: Final = "Restarting"
RESCHEDULING: Final = "Rescheduling"
FAILED: Final = "Failed"
_PHASES: Final[Mapping[JobPhase, str]] = {
    JobPhase.QUEUED: PENDING,
    JobPhase.CREATING: PENDING,
    JobPhase.PENDING: PENDING,
    JobPhase.RUNNING: "Running",
    JobPhase.SCALING: RESCHEDULING,
    JobPhase.RESTARTING: RESTARTING,
    JobPhase.PAUSED: PENDING,
    JobPhase.RESUMING: STARTING,
    JobPhase.SUCCEEDED: "Succeeded",
    JobPhase.FAILED: FAILED,
    JobPhase.TIMED_OUT: FAILED,
    JobPhase.CANCELLED: FAILED,
    JobPhase.UNKNOWN: "Unknown",
}
_POD_PHASES: Final[Mapping[ReplicaPhase, str]] = {
    ReplicaPhase.CREATING: "Pending",
    ReplicaPhase.PENDING: "Pending",
    ReplicaPhase.RUNNING: "Running",
    ReplicaPhase.SUCCEEDED: "Succeeded",
    ReplicaPhase.FAILED: "Failed",
    ReplicaPhase.UNKNOWN: "Unknown",
}
_SENTENCES: Final[Mapping[str, str]] = {
    PENDING: "job created.",
    STARTING: "job is starting since all pods are created.",
    "Running": "job is running since all pods are running.",
    "Succeeded": "job succeeded since all the replicas are succeeded.",
}


class _Step(NamedTuple):
    """The moment at which the job entered a native phase."""

    at: datetime
    phase: str
    message: str


def native_status(job: str, sizes: Mapping[str, int], facts: StatusFacts) -> dict[str, Any]:
    status = facts.status
    shown: dict[str, Any] = {
        "phase": native_phase(status),
        "conditions": _conditions(_steps(job, facts)),
        "replicas": sum(sizes.values()),
        "readyReplicas": 0,
        "restarts": status.restarts,
        "reschedules": status.reschedules,
        "profilings": dict(facts.reported),
    }
    # As upstream, an ended job has no ready replicas and no taskStatus.
    if status.phase.is_terminal:
        if status.finished_at is not None:
            shown["completionTimestamp"] = _time(status.finished_at)
        return shown
    shown["readyReplicas"] = sum(_is_ready(replica) for replica in facts.replicas)
    shown["taskStatus"] = _task_status(sizes, facts.replicas)
    return shown


def native_phase(status: JobStatus) -> str:
    """Return the phase of upstream. A job is Starting from the creation of all its pods until all of them run."""
    found = _phase_of(status.phase, status.reason)
    if found == PENDING and status.initialized_at is not None:
        return STARTING
    return STARTING if status.is_restored and found in (RESTARTING, RESCHEDULING) else found


def _phase_of(phase: JobPhase, reason: str) -> str:
    """Return the native phase of a phase and reason. Failures before the first run also count as a restart."""
    if phase in (JobPhase.CREATING, JobPhase.PENDING, JobPhase.RESTARTING):
        if reason == Reason.DISRUPTED:
            return RESCHEDULING
        if reason == Reason.RESTARTING:
            return RESTARTING
    return _PHASES[phase]


def _steps(job: str, facts: StatusFacts) -> list[_Step]:
    """Return the changes of the native phase, the oldest first."""
    created_all = facts.status.initialized_at
    steps = [_Step(facts.created_at, PENDING, _SENTENCES[PENDING])]
    for transition in facts.status.transitions:
        phase = _phase_of(transition.phase, transition.reason)
        # The creation of the last pod is no transition of the uniform phase, so its step is inserted where it belongs
        # in time.
        if created_all is not None and created_all < transition.at and steps[-1].phase == PENDING:
            steps.append(_Step(created_all, STARTING, _SENTENCES[STARTING]))
        if phase == PENDING and created_all is not None and created_all <= transition.at:
            phase = STARTING
        _start_again(steps, facts.status.restored_at, transition.at)
        if phase != steps[-1].phase:
            steps.append(_Step(transition.at, phase, _message(phase, transition, job, facts)))
    if created_all is not None and steps[-1].phase == PENDING:
        steps.append(_Step(created_all, STARTING, _SENTENCES[STARTING]))
    _start_again(steps, facts.status.restored_at, None)
    return steps


def _start_again(steps: list[_Step], restored_at: datetime | None, before: datetime | None) -> None:
    """Add the change from a restart or resize back to Starting, if it happened before this moment (None: ever)."""
    last = steps[-1]
    if restored_at is None or last.phase not in (RESTARTING, RESCHEDULING) or restored_at < last.at:
        return
    if before is None or restored_at <= before:
        steps.append(_Step(restored_at, STARTING, _SENTENCES[STARTING]))


def _message(phase: str, transition: Transition, job: str, facts: StatusFacts) -> str:
    """Return upstream's sentence for a phase, or its beginning and the message of the transition."""
    if phase in _SENTENCES:
        return _SENTENCES[phase]
    if phase == RESCHEDULING:
        cause = "replicas changed" if transition.phase is JobPhase.SCALING else "pods were taken away"
        return f"job is rescheduling since {cause}: {transition.message}"
    if phase == RESTARTING:
        return f"job is restarting since pods failed: {transition.message}"
    if phase == FAILED:
        return _failure(job, facts, transition)
    return transition.message


def _failure(job: str, facts: StatusFacts, transition: Transition) -> str:
    """Return the message of a failure. The backoff limit counts failed pods and not disrupted ones."""
    if transition.reason != Reason.RULE_FULFILLED:
        return f"job failed: {transition.message}"
    ended_by = facts.status.ended_by
    spent = f" since {ended_by.failed} pods failed. and exceed backoff limit" if ended_by.failed else ""
    failures = list_failures(ended_by, lambda key: pod_name(job, *key))
    return f"job failed{spent}: {failures or transition.message}"


def _conditions(steps: Iterable[_Step]) -> list[dict[str, Any]]:
    """Return a condition for each phase, ordered by the last time of entry. That of the present phase is True."""
    shown: list[dict[str, Any]] = []
    for step in steps:
        shown = [_no_longer(condition, step.at) for condition in shown if condition["type"] != step.phase]
        shown.append(
            {
                "type": step.phase,
                "status": "True",
                "reason": f"Job{step.phase}",
                "message": step.message,
                "lastUpdateTime": _time(step.at),
                "lastTransitionTime": _time(step.at),
            }
        )
    return shown


def _no_longer(condition: dict[str, Any], at: datetime) -> dict[str, Any]:
    if condition["status"] == "False":
        return condition
    return {**condition, "status": "False", "lastUpdateTime": _time(at), "lastTransitionTime": _time(at)}


def _task_status(sizes: Mapping[str, int], replicas: Iterable[Replica]) -> dict[str, dict[str, int]]:
    """Return the number of existing pods by task and phase, including the pods that are leaving."""
    counts: dict[str, Counter[str]] = {task: Counter() for task in sizes}
    for replica in replicas:
        attempt = replica.attempt
        has_left = replica.leaving and attempt.outcome is not None
        if attempt.pod_uid is not None and replica.phase in _POD_PHASES and not has_left:
            counts[replica.key.task][_POD_PHASES[replica.phase]] += 1
    return {task: dict(of_task) for task, of_task in counts.items()}


def _is_ready(replica: Replica) -> bool:
    """Return whether all containers of the pod are ready and the pod is not being stopped."""
    attempt = replica.attempt
    containers = [container for container in attempt.containers if not container.init]
    lives = attempt.outcome is None and attempt.stopping is None and not replica.leaving
    return lives and bool(containers) and all(container.ready for container in containers)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
