"""The status object in the format of TensorStack's controller."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.domain.kinds.generic_job.plan import replica_name
from app.domain.kinds.generic_job.spec import GenericJobSpec
from app.domain.kinds.job_kind import StatusFacts
from app.domain.plan import Rank
from app.domain.status.failures import cause_of, earliest_failure
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Condition, JobStatus, Replica
from app.domain.vocabulary import COUNTERS, ConditionType, JobPhase, Reason

NO_REASON: Final = "-"
_FAILED: Final = "Failed"
_PHASES: Final[Mapping[JobPhase, str]] = {
    JobPhase.QUEUED: "Pending",
    JobPhase.CREATING: "Pending",
    JobPhase.PENDING: "Pending",
    JobPhase.RUNNING: "Running",
    JobPhase.SCALING: "Running",
    JobPhase.RESTARTING: "Running",
    JobPhase.PAUSED: "Paused",
    JobPhase.RESUMING: "Resuming",
    JobPhase.SUCCEEDED: "Succeeded",
    JobPhase.FAILED: "Failed",
    JobPhase.TIMED_OUT: "Failed",
    JobPhase.CANCELLED: "Failed",
    JobPhase.UNKNOWN: "Unknown",
}
_CONDITIONS: Final = (
    ConditionType.INITIALIZED,
    ConditionType.RUNNING,
    ConditionType.REPLICA_FAILURE,
    ConditionType.COMPLETED,
    ConditionType.FAILED,
    ConditionType.PAUSED,
)
_ENDS: Final = frozenset({ConditionType.COMPLETED, ConditionType.FAILED})
LISTED_REPLICAS: Final = 1000
"""The most replicas that a status lists, in all tasks. Upstream's has all, but etcd refuses an object of 1.5 MiB, which
some thousands make."""
# The message of a fulfilled rule begins with the name of the rule, see `_fulfilment` in reconcile/rules.py.
_RULE: Final = re.compile(r"(success|failure)Rules\[([0-9]+)\]")


def native_status(spec: GenericJobSpec, job: str, facts: StatusFacts) -> dict[str, Any]:
    replicas = {replica.key: replica for replica in facts.replicas}
    recorded = {condition.type: condition for condition in facts.status.conditions}
    submitted = _time(facts.created_at)
    most = _list_limit(spec)
    return {
        "tasks": [_task(job, item.type, item.replicas, replicas, most) for item in spec.replica_specs],
        "phase": native_phase(facts.status),
        "aggregate": {counter: facts.status.aggregate.get(phase, 0) for phase, counter in COUNTERS.items()},
        "conditions": [
            _condition(spec, kind, recorded.get(kind), facts.status, submitted)
            | (_replica_failure(job, facts.replicas) if kind is ConditionType.REPLICA_FAILURE else {})
            for kind in _CONDITIONS
        ],
    }


def native_phase(status: JobStatus) -> str:
    """Return the phase of upstream, which calls a job Paused as soon as the deletion of its pods begins."""
    if status.reason == Reason.PAUSING and not status.phase.is_terminal:
        return "Paused"
    return _PHASES[status.phase]


def _list_limit(spec: GenericJobSpec) -> int:
    """Return the most replicas of a task that are listed. A large job lists as many of each task, but at least one."""
    total = sum(item.replicas for item in spec.replica_specs)
    return total if total <= LISTED_REPLICAS else max(1, LISTED_REPLICAS // len(spec.replica_specs))


def _task(job: str, task: str, count: int, replicas: Mapping[Rank, Replica], most: int) -> dict[str, Any]:
    known = [replicas.get(Rank(task, rank)) for rank in range(count)]
    shown: dict[str, Any] = {
        "type": task,
        "restartCount": sum(replica.restarts for replica in known if replica),
        "replicas": [_replica(replica_name(job, task, rank), replica) for rank, replica in enumerate(known[:most])],
    }
    if count > most:
        shown["replicasOmitted"] = count - most
    return shown


def _replica(name: str, replica: Replica | None) -> dict[str, Any]:
    # Until its first pass, a stored job has no replicas.
    if replica is None:
        return {"name": name, "uid": "", "phase": "Creating", "containers": []}
    return {
        "name": name,
        "uid": replica.attempt.pod_uid or "",
        "phase": str(replica.phase),
        "containers": [_container(item) for item in replica.attempt.containers if not item.init],
    }


def _container(container: ObservedContainer) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": container.name, "state": container.state.capitalize()}
    if container.state == "terminated":
        shown["exitCode"] = container.exit_code
    return shown


def _condition(
    spec: GenericJobSpec, kind: ConditionType, found: Condition | None, job: JobStatus, submitted: str
) -> dict[str, Any]:
    """Return a condition, `found` as it is recorded.

    A condition that was never True has the status False and, as in upstream, the reason "-". Its time is that of the
    submission, `submitted`.
    """
    status, reason, message = "False", NO_REASON, ""
    if found is not None:
        status, reason, message = found.status, NO_REASON, found.message
    if kind in _ENDS and job.phase.is_terminal:
        status, reason, message = _end(spec, kind, job)
    elif kind is ConditionType.RUNNING and native_phase(job) == _FAILED:
        status, reason = "False", _FAILED
    elif found is not None and kind is ConditionType.PAUSED and status == "True":
        reason = found.reason
    return {
        "type": str(kind),
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": _time(found.last_transition_at) if found else submitted,
    }


def _end(spec: GenericJobSpec, kind: ConditionType, status: JobStatus) -> tuple[str, str, str]:
    """Return status, reason and message of Completed or Failed at the end of a job.

    Every end completes a job, so that a client that waits for Completed sees failures too: TensorStack's manual of
    2024-09 (API page of GenericJob). Deadline and cancel are failures.
    """
    succeeded = status.phase == JobPhase.SUCCEEDED
    reason = str(status.phase) if status.phase in (JobPhase.SUCCEEDED, JobPhase.FAILED) else status.reason
    holds = kind == ConditionType.COMPLETED or not succeeded
    return ("True" if holds else "False"), reason, _message(spec, status, succeeded=succeeded)


def _replica_failure(job: str, replicas: Sequence[Replica]) -> dict[str, str]:
    """Return reason and message of ReplicaFailure in the words of upstream, which name the pod that failed first."""
    if (failed := earliest_failure(replicas)) is None:
        return {}
    pod, code = replica_name(job, failed.key.task, failed.key.rank), failed.attempt.exit_code
    if code is None:
        return {"reason": "ErrorInPod", "message": f"Pod[{pod}] failed: {failed.attempt.reason}"}
    return {"reason": "ErrorInPod", "message": f"Pod[{pod}] exited with error code {code}"}


def _message(spec: GenericJobSpec, status: JobStatus, *, succeeded: bool) -> str:
    """Return upstream's sentence with the rule that ended the job, extended by the rule's place in the spec.

    The message of a failure also has its cause.
    """
    outcome = "succeeded" if succeeded else "failed"
    if status.reason != Reason.RULE_FULFILLED:
        return status.message
    found = _RULE.match(status.message)
    if found is None:
        return "The job is succeeded: all replicas have succeeded." if succeeded else status.message
    rules = spec.success_rules if found[1] == "success" else spec.failure_rules
    if int(found[2]) >= len(rules):
        return status.message
    rule = ", ".join(f'"{task}": {json.dumps(ranks)}' for task, ranks in rules[int(found[2])].items())
    cause = f": {cause_of(status.ended_by.first[0])}" if status.ended_by.first else ""
    return f"The job is {outcome} with rule: {{ {rule} }} ({found[0]}){cause}"


def _time(at: datetime) -> str:
    # Faster than strftime: each answer to a submission has such a time.
    return at.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
