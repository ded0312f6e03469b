"""The status object as mxnet-operator declares it, including the fields that the operator never sets."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from app.domain.kinds.job_kind import StatusFacts
from app.domain.kinds.mx_job.conditions import conditions
from app.domain.kinds.mx_job.plan import replica_name
from app.domain.kinds.mx_job.spec import MxJobSpec, MxReplicaSpec, MxRole
from app.domain.plan import Rank
from app.domain.status.ends import has_failed
from app.domain.status.failures import list_failures
from app.domain.status.records import JobStatus, Replica
from app.domain.vocabulary import JobPhase, Outcome, Reason, ReplicaPhase

UNKNOWN: Final = "Unknown"
STARTING: Final = "Starting"
RUNNING: Final = "Running"
FAILED: Final = "Failed"
SUCCEEDED: Final = "Succeeded"

# A role has the first of these states that one of its replicas has. With none of them, a role is Unknown unless all of
# its replicas have succeeded.
_FIRST: Final = (FAILED, RUNNING, STARTING)
_PHASES: Final[Mapping[JobPhase, str]] = {
    JobPhase.QUEUED: "",
    JobPhase.CREATING: "Creating",
    JobPhase.PENDING: "Creating",
    JobPhase.RUNNING: "Running",
    JobPhase.SCALING: "Running",
    JobPhase.RESTARTING: "Running",
    JobPhase.PAUSED: "Running",
    JobPhase.RESUMING: "Running",
    JobPhase.SUCCEEDED: "Done",
    JobPhase.FAILED: "Failed",
    JobPhase.TIMED_OUT: "Failed",
    JobPhase.CANCELLED: "Failed",
    JobPhase.UNKNOWN: "Running",
}
# SuccessImpossible is not among them, since the plan of an MxJob has a failure rule for any replica.
_ENDS_BY_REPLICAS: Final = frozenset({Reason.RULE_FULFILLED, Reason.NO_RULE_FULFILLED})


def native_status(spec: MxJobSpec, job: str, facts: StatusFacts) -> dict[str, Any]:
    replicas = {replica.key: replica for replica in facts.replicas}
    status = facts.status
    return {
        "phase": native_phase(status, deleted=facts.deleted),
        "reason": _reason(spec, job, facts),
        "controlPaused": False,
        "conditions": conditions(spec, job, facts),
        "state": native_state(status),
        "replicaStatuses": [_role(replica, replicas) for _, replica in spec.roles],
    }


def native_phase(status: JobStatus, *, deleted: bool = False) -> str:
    """Return the phase of upstream.

    A job that its replicas ended is Done, also after a failure; any other is Failed.
    """
    if status.reason == Reason.CANCELLING or (deleted and status.gone_at is None):
        return "CleanUp"
    if status.phase is JobPhase.FAILED and status.reason in _ENDS_BY_REPLICAS:
        return "Done"
    return _PHASES[status.phase]


def native_state(status: JobStatus) -> str:
    if status.phase is JobPhase.SUCCEEDED:
        return SUCCEEDED
    if status.phase.is_terminal:
        return FAILED
    return RUNNING if _PHASES[status.phase] == "Running" and status.phase is not JobPhase.UNKNOWN else UNKNOWN


def _reason(spec: MxJobSpec, job: str, facts: StatusFacts) -> str:
    """Return why an ended job did not succeed: the failures of its replicas, or the message of its status."""
    status = facts.status
    if not status.phase.is_terminal or status.phase is JobPhase.SUCCEEDED:
        return ""
    if status.reason not in _ENDS_BY_REPLICAS:
        return status.message
    failures = list_failures(status.ended_by, lambda key: replica_name(job, key.task, spec.runtime_id or "", key.rank))
    return failures or status.message


def _role(spec: MxReplicaSpec, replicas: Mapping[Rank, Replica]) -> dict[str, Any]:
    task = MxRole(spec.mx_replica_type).task
    counts = Counter(_state(replicas.get(Rank(task, rank))) for rank in range(spec.replicas))
    state = next((state for state in _FIRST if counts[state]), UNKNOWN)
    return {
        "Mx_replica_type": spec.mx_replica_type,
        "state": SUCCEEDED if counts[SUCCEEDED] == spec.replicas else state,
        "ReplicasStates": dict(sorted(counts.items())),
    }


def _state(replica: Replica | None) -> str:
    """Return the state of a replica. As in upstream, a replica that failed and is restarted stays Running meanwhile."""
    if replica is None:
        return STARTING
    if has_failed(replica):
        return FAILED
    if replica.attempt.outcome in (Outcome.FAILED, Outcome.DISRUPTED):
        return RUNNING if replica.restarts or replica.attempt.outcome is Outcome.FAILED else STARTING
    if replica.phase in (ReplicaPhase.CREATING, ReplicaPhase.PENDING):
        return RUNNING if replica.restarts else STARTING
    return {ReplicaPhase.RUNNING: RUNNING, ReplicaPhase.SUCCEEDED: SUCCEEDED}.get(replica.phase, UNKNOWN)
