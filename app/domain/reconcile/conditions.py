"""Computes the uniform conditions of a job. A kind shows them under the names of its kind."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from app.domain.plan import GangPlan, JobPlan, Rank
from app.domain.reconcile.lifecycle import has_failed
from app.domain.status.records import Condition, JobStatus, Replica
from app.domain.vocabulary import ConditionType, JobPhase

# Cancelled is neither a success nor a failure: Completed and Failed are both False.
ENDED_BADLY = (JobPhase.FAILED, JobPhase.TIMED_OUT)
_FOLLOWED = frozenset({ConditionType.SCHEDULER_UNAVAILABLE})
FOUND = ("SchedulerFound", "this cluster has the requested scheduler")


def job_conditions(
    status: JobStatus, plan: JobPlan, replicas: Mapping[Rank, Replica], now: datetime, *, gang_available: bool
) -> tuple[Condition, ...]:
    """Return the conditions of a job. A condition appears once it has been True."""
    wanted: dict[ConditionType, tuple[bool, str, str]] = {}
    if status.initialized_at is not None:
        wanted[ConditionType.INITIALIZED] = (True, "Initialized", "every replica's pod has been created")
    if status.started_at is not None:
        wanted[ConditionType.RUNNING] = (status.phase is JobPhase.RUNNING, status.reason, status.message)
    failed = [str(key) for key, replica in replicas.items() if has_failed(replica)]
    if failed:
        # Twenty names bound the length of the message for a job of ten thousand replicas.
        wanted[ConditionType.REPLICA_FAILURE] = (True, "ReplicaFailed", f"failed for good: {', '.join(failed[:20])}")
    paused = status.phase is JobPhase.PAUSED
    if paused or any(condition.type is ConditionType.PAUSED for condition in status.conditions):
        wanted[ConditionType.PAUSED] = (paused, status.reason, status.message)
    if status.phase.is_terminal:
        wanted[ConditionType.COMPLETED] = (status.phase is JobPhase.SUCCEEDED, status.reason, status.message)
        wanted[ConditionType.FAILED] = (status.phase in ENDED_BADLY, status.reason, status.message)
    known = any(condition.type is ConditionType.SCHEDULER_UNAVAILABLE for condition in status.conditions)
    if plan.gang is not None:
        lacks = _scheduler_lacks(plan.gang, gang_available=gang_available)
        if lacks or known:
            wanted[ConditionType.SCHEDULER_UNAVAILABLE] = (bool(lacks), *(lacks or FOUND))
    elif plan.missing_scheduler is not None:
        message = f"this cluster has no scheduler {plan.missing_scheduler}: the default one places the replicas"
        wanted[ConditionType.SCHEDULER_UNAVAILABLE] = (True, "NoScheduler", message)
    return merged(status.conditions, wanted, now, status.observed_generation)


def _scheduler_lacks(gang: GangPlan, *, gang_available: bool) -> tuple[str, str] | None:
    """Return reason and message of the condition SchedulerUnavailable; None if the cluster has the scheduler."""
    api = f"{gang.api_version} {gang.kind}"
    if gang.scheduler_name and gang_available:
        return None
    if gang.scheduler_name:
        return "NoSuchApi", f"this cluster has no {api}: {gang.scheduler_name} places each replica by itself"
    if gang_available:
        return "NoScheduler", f"no scheduler is configured for {api}: the default one places each replica by itself"
    return "NoSuchApi", f"this cluster has no {api}: the default scheduler places each replica by itself"


def merged(
    before: Sequence[Condition],
    wanted: Mapping[ConditionType, tuple[bool, str, str]],
    now: datetime,
    generation: int,
    *,
    followed: Collection[ConditionType] = _FOLLOWED,
) -> tuple[Condition, ...]:
    """Return the wanted conditions. A condition keeps its time, reason and message until its status changes.

    Conditions of `followed` always get the wanted reason and message, since the obstacle that they describe can change
    while their status stays.
    """
    known = {condition.type: condition for condition in before}
    conditions: list[Condition] = []
    for type_, (holds, reason, message) in wanted.items():
        state = str(holds)
        old = known.get(type_)
        if old is not None and old.status == state:
            conditions.append(replace(old, reason=reason, message=message) if type_ in followed else old)
            continue
        conditions.append(
            Condition(
                type=type_,
                status=state,
                reason=reason,
                message=message,
                last_transition_at=now,
                observed_generation=generation,
            )
        )
    return tuple(conditions)
