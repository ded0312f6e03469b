"""What follows a decision on a job: its write, the work that remains once it is stored, and the span of that work."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from app.db.jobs import controller
from app.db.jobs.controller import StoredJob
from app.db.jobs.controller_writes import JobWrite
from app.domain.reconcile.values import Decision
from app.loops.jobs.actions.work import Work
from app.loops.jobs.memory_budget import acting_bytes
from app.loops.reconcile_span import reconcile_span
from app.telemetry.trace_context import TraceContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedJob:
    """A loaded job, the decision on it with its time, and the work that the actuator gets once it is stored."""

    job: StoredJob
    decision: Decision
    decided_at: datetime
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWork:
    """The work that follows a stored decision: its actions, and when to reconcile the job again.

    It holds neither the record of the job nor its replicas, because many of these wait for the cluster at once.
    `memory` is its estimated size in bytes. A `quiet` job will not change any more. `trace` is the context of the job's
    submission. `is_recorded` is true if the reconcile has a span, because it changed something or has actions.
    """

    key: str
    trace: TraceContext | None
    decided_at: datetime
    is_recorded: bool
    work: Work
    again: bool
    wake_at: datetime | None
    quiet: bool
    memory: int

    @property
    def namespace(self) -> str:
        return self.work.plan.identity.namespace


def must_be_written(item: DecidedJob) -> bool:
    decision, job = item.decision, item.job
    # The write of an observed intent clears `intent_at`. Otherwise the job would stay among the pending intents.
    return decision.dirty or job.intent_is_new or decision.wake_at != job.wake_at


def write_for(item: DecidedJob, usage_labels: Iterable[str]) -> JobWrite:
    """Return the write of a decision. Usage is added up by the labels with these keys."""
    plan = item.work.plan
    changed = (replica.key for replica in item.decision.changed)
    # A leaving rank is not in the plan any more. Its row keeps the name of its pod.
    names = {key: plan.pod_name(key) for key in changed if key in plan.replicas}
    group = item.job.usage_group(plan.queue.name if plan.queue is not None else "", usage_labels)
    return item.job.write(item.decision, observed_at=item.decision.status.observed_at, pod_names=names, group=group)


def stored_work(item: DecidedJob, size: controller.JobSize) -> StoredWork:
    decision = item.decision
    return StoredWork(
        key=str(item.job.uid),
        trace=item.job.trace,
        decided_at=item.decided_at,
        is_recorded=bool(item.work.actions) or must_be_written(item),
        work=item.work,
        again=decision.again,
        wake_at=decision.wake_at,
        quiet=decision.status.quiet,
        memory=acting_bytes(size),
    )


def record_span(task: StoredWork) -> AbstractContextManager[object]:
    """Record the block, which acts, as the span of a reconcile in the trace of the job's submission.

    A reconcile that has stored nothing and has no actions is not recorded.
    """
    identity = task.work.plan.identity
    about = {
        "jobgate.job.uid": task.key,
        "jobgate.job.name": identity.name,
        "k8s.namespace.name": identity.namespace,
    }
    actions = len(task.work.actions)
    return reconcile_span(task.trace, about, actions=actions, has_effect=task.is_recorded, began_at=task.decided_at)
