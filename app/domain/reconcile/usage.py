"""Follows in each reconcile what the pods of a job hold, and what the job needs for its usage.

A hold is part of the record of its attempt, and `Decision.usage` has the sums of a hold that ends. Both are
stored in one transaction, so each hold is counted once, whatever crashes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.lifecycle import track
from app.domain.reconcile.resizing import Members
from app.domain.reconcile.stepping import Directive
from app.domain.reconcile.values import Inputs
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Attempt, JobStatus, Replica
from app.domain.usage.holds import (
    PODS,
    Hold,
    JobMoment,
    JobUse,
    UsePart,
    end_hold,
    held_requests,
    milliseconds,
    next_use,
    parts_of,
    wait_of,
)
from app.domain.usage.sums import ONE_JOB, Cell, Rate, Sums, UsageChange, add_ended, add_rate, with_ended
from app.domain.vocabulary import ReplicaPhase, Use


@dataclass(slots=True, kw_only=True)
class UsageFollower:
    """Follows what one job uses in one reconcile: `track`, then `follow_job`, then `change`.

    `ended` are the attempts whose hold this reconcile ends, and `sums` the sums of these holds.
    """

    inputs: Inputs
    ended: list[Attempt] = field(default_factory=list)
    sums: Sums = field(default_factory=dict)
    _requests: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def track(self, replica: Replica, pods: Sequence[ObservedPod]) -> Replica:
        """Return the replica with its attempt updated from its pod, and with the hold of the attempt."""
        replica = track(replica, pods, self.inputs.observed.gone)
        attempt = replica.attempt
        hold = self._next_hold(replica)
        if hold == attempt.hold:
            return replica
        attempt = replace(attempt, hold=hold)
        if hold is not None and hold.until is not None:
            self.ended.append(attempt)
        return replace(replica, attempt=attempt)

    def follow_job(self, status: JobStatus, directive: Directive, members: Members, *, paused: bool) -> JobStatus:
        """Return the status with what the job needs for its usage. `paused` says that its queue has paused the job."""
        use = _follow_job(self.inputs, status, directive, members, paused=paused)
        self.sums = _ended_sums(status.usage, use, self.ended)
        use = with_ended(use, self.sums)
        return status if use == status.usage else replace(status, usage=use)

    def change(self, status: JobStatus, replicas: Mapping[Rank, Replica]) -> UsageChange:
        """Return what a new state of the job adds to the sums, and the rates of what goes on if they change."""
        before = self.inputs.recorded
        rates = rates_of(status.usage, replicas.values())
        known = rates_of(before.status.usage, before.replicas.values())
        return UsageChange(ended=self.sums, rates=rates if rates != known else None)

    def _next_hold(self, replica: Replica) -> Hold | None:
        attempt, now = replica.attempt, milliseconds(self.inputs.now)
        hold = attempt.hold
        if hold is None and attempt.node is not None and not self._had_ended(replica):
            hold = Hold(since=now - self._unseen(attempt), requests=self._requests_of(replica.key.task))
        if hold is None or hold.until is not None:
            return hold
        if hold.started is None and attempt.phase is ReplicaPhase.RUNNING:
            hold = replace(hold, started=max(hold.since, now))
        return hold if attempt.outcome is None else end_hold(hold, self.inputs.recorded.status.usage, now)

    def _had_ended(self, replica: Replica) -> bool:
        before = self.inputs.recorded.replicas.get(replica.key)
        return before is not None and before.attempt.outcome is not None

    def _unseen(self, attempt: Attempt) -> int:
        """Return how long a pod that is first seen after its end has held its requests.

        Only the times of the cluster say so, and only their difference: its clock is another one.
        """
        if attempt.outcome is None or attempt.created_at is None or attempt.finished_at is None:
            return 0
        known = milliseconds(self.inputs.now) - milliseconds(self.inputs.recorded.created_at)
        length = milliseconds(attempt.finished_at) - milliseconds(attempt.created_at)
        return max(0, min(length, known))

    def _requests_of(self, task: str) -> Mapping[str, int]:
        if task not in self._requests:
            plan = self.inputs.plan.task.get(task)
            self._requests[task] = held_requests(plan.template["spec"]) if plan is not None else {PODS: 1}
        return self._requests[task]


def _follow_job(inputs: Inputs, status: JobStatus, directive: Directive, members: Members, *, paused: bool) -> JobUse:
    """Return when the job waits and works after this reconcile. `paused` says that its queue has paused it."""
    recorded, terminal = inputs.recorded, status.phase.is_terminal
    leaves = terminal or paused or inputs.plan.paused or inputs.intent.cancel or inputs.intent.remove
    moment = JobMoment(
        works=_works(inputs.plan, members.wanted.values()),
        stops=terminal or directive.stop is not None,
        starts=directive.start,
        waits=not leaves,
        holds=any(_holds_node(replica) for replica in members.all.values()),
        submitted=None if recorded.replicas else milliseconds(recorded.created_at),
        now=milliseconds(inputs.now),
    )
    return next_use(status.usage, moment)


def _works(plan: JobPlan, replicas: Iterable[Replica]) -> bool:
    """Return whether as many replicas of each task run, or need not run any more, as the job needs to work."""
    able = Counter(
        replica.key.task
        for replica in replicas
        if replica.settled or (replica.phase is ReplicaPhase.RUNNING and replica.attempt.outcome is None)
    )
    return all(able[task.name] >= task.needed for task in plan.tasks)


def _holds_node(replica: Replica) -> bool:
    return replica.attempt.hold is not None and replica.attempt.hold.until is None


def _ended_sums(before: JobUse, after: JobUse, attempts: Iterable[Attempt]) -> Sums:
    """Return the sums of what ends between two states of a job: of the holds of these attempts, and of its wait."""
    sums: dict[Cell, int] = {}
    for attempt in attempts:
        assert attempt.hold is not None, "an attempt whose hold has ended has one"
        for piece in parts_of(attempt.hold, after, attempt.outcome, attempt.stopping):
            add_ended(sums, piece, attempt.hold.requests)
    wait = wait_of(before, after)
    if wait is not None:
        add_ended(sums, wait, ONE_JOB)
    return sums


def rates_of(job: JobUse, replicas: Iterable[Replica]) -> dict[Cell, Rate]:
    """Return the rates of a job: of its holds that go on, and of its wait in the queue."""
    # Replicas that were bound and started together share their pieces, so a large job has few of them.
    alike = Counter(
        (hold.since, hold.started, tuple(hold.requests.items()))
        for replica in replicas
        if (hold := replica.attempt.hold) is not None and hold.until is None
    )
    rates: dict[Cell, Rate] = {}
    for (since, started, requests), count in alike.items():
        hold = Hold(since=since, started=started, requests={name: amount * count for name, amount in requests})
        for piece in parts_of(hold, job, None, None):
            add_rate(rates, piece, hold.requests)
    if job.queued_since is not None:
        add_rate(rates, UsePart(Use.QUEUED, job.queued_since, None), ONE_JOB)
    return {cell: rate for cell, rate in rates.items() if rate != (0, 0)}
