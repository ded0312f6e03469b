"""Withdraws a job that holds nodes while others of its replicas find none, and starts it again later.

Two such jobs can wait for each other for ever, where neither a queue nor a gang scheduler prevents it. A job that has
run whole since its last pause is never withdrawn, and neither is one with as many replicas as it needs to work.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from app.base.backoff import share_of
from app.domain.plan import JobPlan
from app.domain.reconcile.resizing import Members
from app.domain.reconcile.timing import Timing
from app.domain.reconcile.values import Inputs
from app.domain.status.records import NOT_PARTIAL, PartialStart, Replica
from app.domain.status.rollup import obstacle_of

# How often a job that is due requests its turn. `StartTurns` also queues it when it has one, but not after a restart.
TURN_POLL: Final = timedelta(seconds=60)


def next_start(inputs: Inputs, members: Members) -> PartialStart:
    """Return the start of the job after this reconcile. Its replicas stop while it has `again_at`."""
    status, plan, now = inputs.recorded.status, inputs.plan, inputs.now
    before, limit = status.partial_start, start_deadline_of(plan, inputs.timing)
    if status.phase.is_terminal or status.active_since is not None or plan.paused or limit is None:
        return NOT_PARTIAL
    # Its queue decides how long a job may hold quota before it runs whole.
    if status.queueing is not None:
        return NOT_PARTIAL
    if before.again_at is not None:
        stops = any(not replica.lacks_pod for replica in members.wanted.values())
        waits = now < before.again_at or stops or not inputs.may_start
        return before if waits else PartialStart(withdrawals=before.withdrawals)
    if not _is_partial(plan, members, now):
        return PartialStart(withdrawals=before.withdrawals)
    since = before.since or now
    if now < since + timedelta(seconds=limit):
        return PartialStart(since=since, withdrawals=before.withdrawals)
    wait = inputs.timing.start_backoff(before.withdrawals, share_of(f"{plan.identity.uid} {before.withdrawals}"))
    return PartialStart(withdrawals=before.withdrawals + 1, again_at=now + wait, obstacle=_obstacle(inputs, members))


def start_deadline_of(plan: JobPlan, timing: Timing) -> float | None:
    """Return the start deadline of the job's annotation, otherwise of the installation; None means no limit."""
    return (timing.start_deadline if plan.start_deadline is None else plan.start_deadline) or None


def start_due(inputs: Inputs, start: PartialStart) -> datetime | None:
    """Return when the job is withdrawn, or starts again, if nothing changes before."""
    limit = start_deadline_of(inputs.plan, inputs.timing)
    if start.since is not None and limit is not None:
        return start.since + timedelta(seconds=limit)
    if start.again_at is None or start.again_at > inputs.now:
        return start.again_at
    return inputs.now + TURN_POLL


def _is_partial(plan: JobPlan, members: Members, now: datetime) -> bool:
    """Return whether some replicas hold nodes, others wait for one, and too few have one for the job to work."""
    replicas = members.wanted.values()
    holds = any(replica.attempt.outcome is None and replica.attempt.node is not None for replica in replicas)
    # A replica that backs off after a crash waits for no node yet, so it counts like one that has a node.
    served = Counter(replica.key.task for replica in replicas if not _lacks_node(replica, now))
    if not holds or served.total() == len(replicas):
        return False
    # Many trainers do not replace a parameter server, so each task counts, too. Of a task that may shrink, one replica.
    lacks_task = any(
        served[task.name] < (task.size if task.least is None else min(1, task.needed)) for task in plan.tasks
    )
    return lacks_task or served.total() < plan.minimum


def _lacks_node(replica: Replica, now: datetime) -> bool:
    """Return whether nothing but a node, or the create of its pod, is missing to the replica."""
    backs_off = replica.retry_at is not None and replica.retry_at > now
    return replica.attempt.outcome is None and replica.attempt.node is None and not backs_off


def _obstacle(inputs: Inputs, members: Members) -> str:
    """Return why replicas have no nodes, as the end of a sentence. Those that have one may wait for other things."""
    waiting = {str(replica.key) for replica in members.wanted.values() if _lacks_node(replica, inputs.now)}
    reasons = inputs.recorded.status.pending_reasons
    return obstacle_of([each for each in reasons if not each.started and not waiting.isdisjoint(each.replicas)])
