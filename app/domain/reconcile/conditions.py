"""Computes the uniform conditions of a job. Its native status shows them under the names of its own system."""

from collections.abc import Mapping
from datetime import datetime

from app.domain.manifests.gangs import KIND, newest_version
from app.domain.plan import GangApi, GangPlan, JobPlan, Rank
from app.domain.status.conditions import merge_conditions
from app.domain.status.ends import has_failed
from app.domain.status.records import Condition, JobStatus, Replica
from app.domain.vocabulary import ConditionType, JobPhase

# Cancelled is neither a success nor a failure: Completed and Failed are both False.
ENDED_BADLY = (JobPhase.FAILED, JobPhase.TIMED_OUT)
_FOLLOWED = frozenset({ConditionType.SCHEDULER_UNAVAILABLE})
FOUND = ("SchedulerFound", "this cluster has the requested scheduler")


def job_conditions(
    status: JobStatus, plan: JobPlan, replicas: Mapping[Rank, Replica], now: datetime
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
    if plan.gang is not None and GangApi.TENSORSTACK in plan.gang.apis:
        lacks = _scheduler_lacks(plan.gang)
        if lacks or known:
            wanted[ConditionType.SCHEDULER_UNAVAILABLE] = (bool(lacks), *(lacks or FOUND))
    elif plan.missing_scheduler is not None:
        message = f"this cluster has no scheduler {plan.missing_scheduler}: the default one places the replicas"
        wanted[ConditionType.SCHEDULER_UNAVAILABLE] = (True, "NoScheduler", message)
    return merge_conditions(status.conditions, wanted, now, status.observed_generation, followed=_FOLLOWED)


def _scheduler_lacks(gang: GangPlan) -> tuple[str, str] | None:
    """Return reason and message of the condition SchedulerUnavailable; None if the cluster has the scheduler."""
    api = f"{newest_version(GangApi.TENSORSTACK)} {KIND}"
    if gang.scheduler and gang.api is not None:
        return None
    if gang.scheduler:
        return "NoSuchApi", f"this cluster has no {api}: {gang.scheduler} places each replica by itself"
    if gang.api is None:
        return "NoSuchApi", f"this cluster has no {api}: the default scheduler places each replica by itself"
    how = "each replica by itself" if gang.api is GangApi.TENSORSTACK else "the replicas together, without a queue"
    return "NoScheduler", f"no scheduler is configured for {api}: the default one places {how}"
