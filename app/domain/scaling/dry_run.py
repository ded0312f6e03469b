"""The dry run of the autoscaler: it changes jobs by one replica at a time until no job changes any more.

Each iteration first adds a replica to every job that can have one, the least fulfilled job first. Then it removes a
replica from every job that must give one up, the most fulfilled job first. Each step changes the totals at once, and an
added replica also takes its room on the node that it was planned on.

The search terminates. A step up never brings a resource that the job requests over its limit, and a step down happens
only because a resource is over its limit. So a resource over its limit falls below it and never exceeds it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.domain.scaling.rooms import Rooms
from app.domain.scaling.values import (
    DryRunResult,
    Inventory,
    NodeCapacity,
    ResourceAmount,
    ScalableJob,
    ScalingDecision,
    Verdict,
)
from app.domain.vocabulary import JobPhase

_PARTS = 1_000_000  # loads are integers of millionths, so that sums are exact
_TOO_MANY_GPUS: Final = "more GPUs than the cluster has"


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a job does not get another replica, or why it loses one."""

    verdict: Verdict
    message: str


def dry_run(inventory: Inventory, jobs: Sequence[ScalableJob], *, pending: bool, max_load: float) -> DryRunResult:
    """Return a decision for every job, in the given order.

    If nothing is `pending`, only running jobs are resized. CPU and memory are used up to `max_load` of the total, GPUs
    completely.
    """
    excused = {job.uid: reason for job in jobs if (reason := _excuse(job, pending=pending))}
    run = _DryRun(inventory, [job for job in jobs if job.uid not in excused], max_load)
    run.search()
    decisions = [_leave(job, excused[job.uid]) if job.uid in excused else run.decision(job) for job in jobs]
    return DryRunResult(decisions=tuple(decisions), inventory=run.inventory_after())


def _excuse(job: ScalableJob, *, pending: bool) -> _Reason | None:
    if job.excuse is not None:
        return _Reason(job.excuse.verdict, job.excuse.message)
    if job.least >= job.most:
        return _Reason(Verdict.FIXED_SIZE, f"its least and its most are both {job.most}")
    if job.phase is not JobPhase.RUNNING and not pending:
        return _Reason(Verdict.NOT_RUNNING, f"the job is {job.phase}, and no job waits for room")
    return None


def _leave(job: ScalableJob, reason: _Reason) -> ScalingDecision:
    return _decision(job, job.size, reason.verdict, f"stays at {job.size}: {reason.message}")


def _decision(job: ScalableJob, to: int, verdict: Verdict, message: str) -> ScalingDecision:
    return ScalingDecision(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        task=job.task,
        from_replicas=job.size,
        to_replicas=to,
        verdict=verdict,
        message=message,
    )


# What such a job has requested already may wait for the quota of its queue.
_UNREACHED: Final = (JobPhase.QUEUED, JobPhase.SCALING)


class _DryRun:
    def __init__(self, inventory: Inventory, jobs: Sequence[ScalableJob], max_load: float) -> None:
        self._jobs = jobs
        self._inventory = inventory
        self._rooms = Rooms(inventory.nodes)
        self._requested = inventory.requested
        self._load = max_load
        total = inventory.total
        self._limit = ResourceAmount(
            cpu=_part(total.cpu, max_load), memory=_part(total.memory, max_load), gpu=total.gpu
        )
        self._planned = {job.uid: job.size for job in jobs}
        self._shrunk: dict[str, _Reason] = {}

    def search(self) -> None:
        """Step until no step changes a size."""
        moved = True
        while moved:
            grown = [self._grow(job) for job in self._least_fulfilled_first()]
            shrunk = [self._shrink(job) for job in reversed(self._least_fulfilled_first())]
            moved = any(grown) or any(shrunk)

    def decision(self, job: ScalableJob) -> ScalingDecision:
        to = self._planned[job.uid]
        reason, _ = self._step_up(job)
        assert reason is not None, "nothing is decided before the fixed point"
        if to > job.size:
            return _decision(job, to, Verdict.GROWS, f"grows from {job.size} to {to}; then {reason.message}")
        if to < job.size:
            why = self._shrunk[job.uid].message
            return _decision(job, to, Verdict.SHRINKS, f"shrinks from {job.size} to {to}: {why}")
        return _decision(job, to, reason.verdict, f"stays at {to}: {reason.message}")

    def inventory_after(self) -> Inventory:
        return replace(self._inventory, nodes=self._rooms.nodes, requested=self._requested)

    def _least_fulfilled_first(self) -> list[ScalableJob]:
        """Return the jobs in order of fulfillment; equal ones in order of their requests of GPU, CPU and memory."""

        # The sizes are the planned ones: by their sizes before the run, the same jobs would come first in every
        # iteration. The name makes the order total, so that equal inputs give equal decisions.
        def rank(job: ScalableJob) -> tuple[object, ...]:
            need = job.need
            return (job.fulfillment(self._planned[job.uid]), need.gpu, need.cpu, need.memory, job.namespace, job.name)

        return sorted(self._jobs, key=rank)

    def _grow(self, job: ScalableJob) -> bool:
        reason, node = self._step_up(job)
        if reason is not None:
            return False
        assert node is not None, "a job that can grow has a node"
        self._rooms.charge(node, job)
        self._requested += job.need
        self._planned[job.uid] += 1
        return True

    def _shrink(self, job: ScalableJob) -> bool:
        """Plan one replica less. No node becomes free, since it is not known which node the pod will leave."""
        reason = self._step_down(job)
        if reason is None:
            return False
        self._shrunk.setdefault(job.uid, reason)
        self._requested -= job.need
        self._planned[job.uid] -= 1
        return True

    def _step_up(self, job: ScalableJob) -> tuple[_Reason | None, NodeCapacity | None]:
        if self._planned[job.uid] >= job.most:
            return _Reason(Verdict.AT_MAX, f"{job.most} is its most"), None
        if job.phase in _UNREACHED:
            return _Reason(Verdict.NOT_RUNNING, f"the job is {job.phase}, and has not reached its size"), None
        after = self._requested + job.need
        # The order of the checks is upstream's: memory, a node that fits, CPU, GPU. The first one that fails is
        # reported.
        if job.need.memory and after.memory > self._limit.memory:
            return _Reason(Verdict.MEMORY_AT_LOAD, f"one more would request {self._too_much('memory')}"), None
        node = self._rooms.find(job)
        if node is None:
            return _Reason(Verdict.NO_NODE_FITS, f"no node {_request_of(job)} free"), None
        if job.need.cpu and after.cpu > self._limit.cpu:
            return _Reason(Verdict.CPU_AT_LOAD, f"one more would request {self._too_much('CPU')}"), None
        if job.need.gpu and after.gpu > self._limit.gpu:
            return _Reason(Verdict.GPU_FULL, f"one more would request {_TOO_MANY_GPUS}"), None
        return None, node

    def _step_down(self, job: ScalableJob) -> _Reason | None:
        planned = self._planned[job.uid]
        if planned > job.most:
            return _Reason(Verdict.AT_MAX, f"{job.most} is its most")
        if planned <= job.least:
            return None
        now, need = self._requested, job.need
        if need.gpu and now.gpu > self._limit.gpu:
            return _Reason(Verdict.GPU_FULL, f"pods request {_TOO_MANY_GPUS}")
        if need.cpu and now.cpu > self._limit.cpu:
            return _Reason(Verdict.CPU_AT_LOAD, f"pods request {self._too_much('CPU')}")
        if need.memory and now.memory > self._limit.memory:
            return _Reason(Verdict.MEMORY_AT_LOAD, f"pods request {self._too_much('memory')}")
        return None

    def _too_much(self, resource: str) -> str:
        # Without the amounts: those of the whole cluster are for admins, and the message becomes part of the job's
        # history, which all readers of its namespace read.
        return f"more than {self._load:g} of the {resource} of the cluster"


def _part(total: int, load: float) -> int:
    # Rounded first: most loads have no exact binary form, and a product such as 28.999… for 0.29 of 100 would lose a
    # unit.
    return total * round(load * _PARTS) // _PARTS


def _request_of(job: ScalableJob) -> str:
    need = job.need
    amounts = [f"{need.cpu}m CPU"] if need.cpu else []
    amounts += [f"{need.memory}M memory"] if need.memory else []
    amounts += [f"{need.gpu} GPU"] if need.gpu else []
    head = " and ".join(amounts) or "a place for a pod"
    where = ", ".join(f"{key}={value}" for key, value in sorted(job.selector.items()))
    return f"with the labels {where} has {head}" if where else f"has {head}"
