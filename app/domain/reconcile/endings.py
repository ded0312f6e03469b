"""Determines when a job ends by cancel, refusal or deadline, and when the objects of an ended job are removed.

`rules` determines when the rules of a job end it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.domain.errors import shorten_list
from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.resizing import Members, has_left, is_newcomer
from app.domain.reconcile.rules import Finish, evaluate
from app.domain.reconcile.values import Inputs
from app.domain.status.log_lines import one_line
from app.domain.status.observed import ClusterRefusal, RefusalVerdict
from app.domain.status.records import Intent, JobStatus, Replica
from app.domain.status.rollup import has_to_start
from app.domain.vocabulary import JobPhase, Reason

# The lengths of messages are bounded, since history rows and feed entries repeat them.
LISTED_REASONS = 3
LISTED_REPLICAS = 5


def finish(inputs: Inputs, members: Members) -> Finish | None:
    """Return the end of the job if this reconcile finds one; None if the job goes on or had ended before."""
    status, intent, replicas = inputs.recorded.status, inputs.intent, members.wanted
    if status.phase.is_terminal:
        return None
    # A cancelled job ends only when every replica has left: its phase must not say Cancelled while processes run.
    if intent.cancel or intent.remove:
        left = not inputs.observed.altered and all(has_left(replica) for replica in members.all.values())
        return _cancellation(intent) if left else None
    # Refusals and deadlines come before the rules, since no rule can hold in a job whose pods cannot be created.
    refused = _refusal(inputs, replicas)
    if refused is not None:
        return Finish(phase=JobPhase.FAILED, reason=refused.code, message=refused.message)
    expired = _deadline_end(inputs, replicas)
    # Debug mode suspends the rules, but deadlines still end the job.
    if expired is not None or inputs.plan.suspends_rules:
        return expired
    return evaluate(inputs.plan, replicas)


def ended_status(status: JobStatus, end: Finish, now: datetime) -> JobStatus:
    return replace(
        status,
        phase=end.phase,
        reason=end.reason,
        message=one_line(end.message),
        ended_by=end.ended_by,
        crashed=(),
        finished_at=now,
        pending_reasons=(),
        pending_since=None,
    )


def _cancellation(intent: Intent) -> Finish:
    by = f" by {intent.cancel_actor.name}" if intent.cancel_actor else ""
    why = f": {intent.cancel_reason}" if intent.cancel_reason else ""
    return Finish(phase=JobPhase.CANCELLED, reason=Reason.CANCELLED, message=f"cancelled{by}{why}")


def _refusal(inputs: Inputs, replicas: Mapping[Rank, Replica]) -> ClusterRefusal | None:
    """Return a refusal that ends the job, or None. A refusal of further replicas does not end a running job."""
    observed = inputs.observed
    refusals = [observed.job_refusal] if observed.job_refusal else []
    refusals += [refusal for key, refusal in observed.refusals.items() if not _only_grows(inputs, replicas.get(key))]
    return next((refusal for refusal in refusals if refusal.verdict is RefusalVerdict.FAIL), None)


def _only_grows(inputs: Inputs, replica: Replica | None) -> bool:
    # The rank has left the plan since the create was refused.
    if replica is None:
        return True
    grows = replica.key.task in inputs.plan.elastic and is_newcomer(replica)
    return grows and inputs.recorded.status.started_at is not None


def _deadline_end(inputs: Inputs, replicas: Mapping[Rank, Replica]) -> Finish | None:
    status = inputs.recorded.status
    deadline = active_deadline(inputs.plan, status)
    if deadline is not None and deadline <= inputs.now:
        message = f"the job has been active for more than {inputs.plan.active_deadline} s"
        return Finish(phase=JobPhase.TIMED_OUT, reason=Reason.DEADLINE_EXCEEDED, message=message)
    # The status is that of the last reconcile. Since then, the replicas may have started, so they are checked too.
    deadline = pending_deadline(inputs, status)
    if deadline is not None and deadline <= inputs.now and any(map(has_to_start, replicas.values())):
        seconds = _pending_seconds(inputs)
        message = f"the job has been pending for more than {seconds:g} s: {_describe_waiting(status, replicas)}"
        return Finish(phase=JobPhase.FAILED, reason=Reason.PENDING_DEADLINE_EXCEEDED, message=message)
    return None


def active_deadline(plan: JobPlan, status: JobStatus) -> datetime | None:
    if plan.active_deadline is None or status.active_since is None:
        return None
    return status.active_since + timedelta(seconds=plan.active_deadline)


def pending_deadline(inputs: Inputs, status: JobStatus) -> datetime | None:
    """Return when the job fails if it still waits; None if it does not wait or has no pending deadline."""
    seconds = _pending_seconds(inputs)
    if seconds is None or status.pending_since is None:
        return None
    return status.pending_since + timedelta(seconds=seconds)


def _pending_seconds(inputs: Inputs) -> float | None:
    """Return the pending deadline of the job's annotation, otherwise of the installation; 0 means no limit."""
    own = inputs.plan.pending_deadline
    return (inputs.timing.pending_deadline if own is None else own) or None


def _describe_waiting(status: JobStatus, replicas: Mapping[Rank, Replica]) -> str:
    """Return the waiting replicas with the reasons that were recorded last, as the end of a sentence."""
    reasons = [reason for reason in status.pending_reasons if not reason.started]
    if not reasons:
        waiting = [str(key) for key, replica in replicas.items() if has_to_start(replica)]
        return f"{_list_replicas(waiting, len(waiting))}: no reason is known"
    listed = [
        f"{_list_replicas(reason.replicas, reason.count)}: {reason.code}: {reason.message}"
        for reason in reasons[:LISTED_REASONS]
    ]
    more = len(reasons) - LISTED_REASONS
    return "; ".join(listed + ([f"and {more} more reasons"] if more > 0 else []))


def _list_replicas(replicas: Sequence[str], count: int) -> str:
    return shorten_list(replicas, LISTED_REPLICAS, count)


def is_removing(inputs: Inputs, status: JobStatus) -> bool:
    own = inputs.plan.ttl_after_finished
    due = _after_end(status, inputs.timing.ttl_after_finished if own is None else own)
    return inputs.intent.remove or (due is not None and due <= inputs.now)


def own_removal_due(plan: JobPlan, status: JobStatus) -> datetime | None:
    """Return when the objects of the job are removed by its own annotation; None if it has none.

    The time of the installation is not stored with each job, so that a change of its setting concerns all of them.
    """
    return _after_end(status, plan.ttl_after_finished)


def _after_end(status: JobStatus, seconds: float | None) -> datetime | None:
    if seconds is None or status.finished_at is None:
        return None
    return status.finished_at + timedelta(seconds=seconds)
