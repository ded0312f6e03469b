"""What the queue of a job means for a reconcile: whether its replicas may run, and what is written to its Workload.

    no admission        nothing starts: the job is Queued
    admitted            replicas run, up to the sizes that the admission covers
    evicted             pods are stopped; when none is left, the admission and its quota are given back
    deactivated         the same, and the job is paused until the Workload is active again

The admission is recorded before the first pod is created, and forgotten only when no pod is left. While Kueue cannot be
reached, what is recorded holds: admitted jobs run on, others wait.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from app.domain.plan import GangApi, Rank
from app.domain.queueing.admission import (
    Admitted,
    Evicted,
    ObservedWorkload,
    Queueing,
    TaskAdmission,
    Unadmitted,
    Verdict,
    task_admissions,
    with_topology,
)
from app.domain.queueing.priorities import has_other_priority
from app.domain.queueing.requests import DEFAULT_QUEUE
from app.domain.queueing.workload import pod_sets
from app.domain.reconcile.actions import (
    Action,
    ActivateWorkload,
    EnsureWorkload,
    FinishWorkload,
    GiveBackQuota,
    MarkPodsReady,
    ReclaimPods,
    RemoveWorkload,
    SetPriority,
    UngatePod,
)
from app.domain.reconcile.resizing import Members, has_left
from app.domain.reconcile.values import Inputs
from app.domain.status.observed import KueueState, ObservedQueue
from app.domain.status.records import JobStatus, Replica
from app.domain.vocabulary import JobPhase, PendingCode

CREATING: Final = "the Workload of the job is being created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What the queue of a job permits in one reconcile.

    `record` is what is stored of the queue; None for a job without one. `waits` keeps replicas from starting, `evicts`
    stops them. `paused` says that the job is paused because its Workload is deactivated, or was until now.
    """

    record: Queueing | None = None
    waits: Unadmitted | None = None
    evicts: Evicted | None = None
    paused: bool = False

    def covers(self, key: Rank) -> bool:
        """Return whether the replica may run: the admission of a job covers its tasks up to a size."""
        if self.record is None or self.record.admission is None:
            return self.record is None
        admitted = self.record.admission.get(key.task)
        return admitted is not None and key.rank < admitted.size


def derive_permit(inputs: Inputs) -> Permit:
    """Return what the queue of the job permits, from its record and its Workload."""
    status, known = inputs.recorded.status, inputs.recorded.status.queueing
    if status.phase.is_terminal or inputs.intent.cancel or inputs.intent.remove:
        return Permit(record=known)
    if inputs.plan.paused:
        # The quota is given back with the Workload. The queue of a resumed job is determined again.
        keeps = known is not None and not _is_without_workload(inputs.observed.queue)
        return Permit(record=replace(known, deactivated=False) if known is not None and keeps else None)
    if known is None:
        return _first_permit(inputs)
    return _next_permit(inputs, known)


def _first_permit(inputs: Inputs) -> Permit:
    """Determine the queue of a job before its pods are created, or again after a pause."""
    queue, requested = inputs.observed.queue, _requested(inputs)
    if not _is_unstarted(inputs):
        return Permit()
    if queue.state is KueueState.ABSENT:
        waits = requested is not None and queue.required
        return _without_kueue(f"the cluster does not serve Kueue: {queue.error}") if waits else Permit()
    if queue.state is KueueState.UNKNOWN:
        return _without_kueue(f"jobgate has not listed the queues of the cluster yet: {queue.error}")
    if queue.state is KueueState.DENIED:
        # A job that names no queue cannot depend on a right that the administrator has not given.
        return _without_kueue(f"jobgate may not read Kueue's objects: {queue.error}") if requested else Permit()
    name = requested or (DEFAULT_QUEUE if DEFAULT_QUEUE in queue.local_queues else None)
    return Permit() if name is None else _next_permit(inputs, Queueing(name=name, queued_at=inputs.now))


def _requested(inputs: Inputs) -> str | None:
    queue, gang = inputs.plan.queue, inputs.plan.gang
    if queue is None or not queue.of_own_scheduler:
        return queue.name if queue is not None else None
    # The manifest names no queue of Kueue, so the job does not wait for one that nobody has made.
    has_scheduler = gang is not None and gang.api is GangApi.TENSORSTACK
    return queue.name if not has_scheduler and queue.name in inputs.observed.queue.local_queues else None


def _is_unstarted(inputs: Inputs) -> bool:
    """Return whether the job has no pods, or none since its last pause."""
    if not inputs.recorded.had_pods:
        return True
    runs = any(not has_left(replica) for replica in inputs.recorded.replicas.values() if replica.attempt.pod_uid)
    return inputs.recorded.status.phase in (JobPhase.PAUSED, JobPhase.RESUMING) and not runs


def _without_kueue(message: str) -> Permit:
    return Permit(waits=Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message=message.rstrip(": ")))


def _next_permit(inputs: Inputs, known: Queueing) -> Permit:
    queue = inputs.observed.queue
    if queue.state is not KueueState.LISTED:
        if known.admission is not None or known.deactivated:
            return Permit(record=known, paused=known.deactivated)
        return replace(_without_kueue(f"jobgate cannot read Kueue's objects: {queue.error}"), record=known)
    if queue.workload is None:
        return _permit_without_workload(inputs, known)
    verdict = queue.workload.verdict
    if known.deactivated:
        return _deactivated_permit(inputs, known, verdict)
    match verdict:
        case Admitted():
            return _admitted_permit(inputs, known, queue.workload, verdict)
        case Evicted():
            return _evicted_permit(inputs, known, verdict)
        case Unadmitted():
            if known.admission is None:
                return Permit(record=known, waits=verdict)
            if verdict.holds_quota:
                return Permit(record=known)
            return _evicted_permit(
                inputs, known, Evicted(reason="AdmissionLost", message=verdict.message, holds_quota=False)
            )


def _deactivated_permit(inputs: Inputs, known: Queueing, verdict: Verdict) -> Permit:
    if isinstance(verdict, Evicted) and verdict.is_deactivated:
        return Permit(record=replace(known, evicted_because=verdict.message), paused=True)
    # The next reconcile resumes the job. Its plan is then that of a resumed job.
    return Permit(record=replace(_queue_again(inputs, known), deactivated=False), paused=True)


def _permit_without_workload(inputs: Inputs, known: Queueing) -> Permit:
    if known.admission is None:
        return Permit(record=replace(known, deactivated=False), waits=_creating(known))
    gone = Evicted(reason="WorkloadDeleted", message="the Workload of the job is gone", holds_quota=False)
    return Permit(record=_with_eviction(inputs, known, gone), evicts=gone)


def _creating(known: Queueing) -> Unadmitted:
    return Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message=f"{CREATING} in the queue {known.name}")


def _admitted_permit(inputs: Inputs, known: Queueing, workload: ObservedWorkload, verdict: Admitted) -> Permit:
    if known.admission is not None:
        return Permit(record=replace(known, admission=with_topology(known.admission, verdict)))
    if not _fits(inputs, workload):
        return Permit(record=known, waits=_creating(known))
    sizes = {item.name: {name: inputs.plan.task[name].size for name in item.tasks} for item in pod_sets(inputs.plan)}
    ended = [key for key, replica in inputs.recorded.replicas.items() if _is_over(replica)]
    admission = task_admissions(verdict, sizes, ended, workload.reclaimable)
    reclaimed = dict(workload.reclaimable)
    return Permit(record=replace(known, admission=admission, reclaimed=reclaimed, admitted_at=inputs.now))


def _fits(inputs: Inputs, workload: ObservedWorkload) -> bool:
    """Return whether the Workload requests what the plan needs. Its pod sets cannot be changed."""
    return workload.sizes == {item.name: item.count for item in pod_sets(inputs.plan)}


def _evicted_permit(inputs: Inputs, known: Queueing, verdict: Evicted) -> Permit:
    record = _with_eviction(inputs, known, verdict)
    if known.admission is not None:
        return Permit(record=record, evicts=verdict)
    if verdict.is_deactivated:
        return Permit(record=_deactivated(record, inputs), paused=True)
    waits = Unadmitted(code=PendingCode.WAITING_FOR_QUOTA, message=f"{verdict.reason}: {verdict.message}")
    return Permit(record=record, waits=waits)


def _with_eviction(inputs: Inputs, known: Queueing, verdict: Evicted) -> Queueing:
    is_same = (known.evicted, known.evicted_because) == (verdict.reason, verdict.message)
    is_over = known.admitted_at is not None and known.evicted_at is not None and known.evicted_at < known.admitted_at
    began = known.evicted_at if is_same and not is_over else None
    return replace(known, evicted=verdict.reason, evicted_because=verdict.message, evicted_at=began or inputs.now)


def _queue_again(inputs: Inputs, record: Queueing) -> Queueing:
    """Return the record of a job that waits for another admission."""
    return replace(record, admission=None, reclaimed={}, queued_at=inputs.now, admitted_at=None)


def _deactivated(record: Queueing, inputs: Inputs) -> Queueing:
    return replace(record, deactivated=True, deactivated_in=inputs.plan.identity.generation)


def update_permit(inputs: Inputs, permit: Permit, status: JobStatus, members: Members) -> Permit:
    """Return the permit after the steps of the replicas: an eviction is over when the last pod is gone."""
    record = permit.record
    if record is None or record.admission is None:
        return permit
    if permit.evicts is not None:
        if not are_gone(inputs, members):
            return permit
        record = _queue_again(inputs, record)
        if permit.evicts.is_deactivated:
            return Permit(record=_deactivated(record, inputs), paused=True)
        waits = Unadmitted(
            code=PendingCode.WAITING_FOR_QUOTA, message=f"{permit.evicts.reason}: {permit.evicts.message}"
        )
        return Permit(record=record, waits=waits)
    if inputs.plan.paused and not status.phase.is_terminal:
        return replace(permit, record=replace(record, admission=None)) if are_gone(inputs, members) else permit
    if status.phase.is_terminal or inputs.intent.cancel or inputs.intent.remove:
        return permit
    if _needs_another_admission(inputs, permit, members):
        record = _queue_again(inputs, record)
        return Permit(record=record, waits=_creating(record))
    return replace(permit, record=_reclaim(inputs, record, members))


def _needs_another_admission(inputs: Inputs, permit: Permit, members: Members) -> bool:
    """Return whether all admitted replicas have ended for good, and others wait that the admission does not cover."""
    covered = (replica for key, replica in members.wanted.items() if permit.covers(key))
    waits = any(not permit.covers(key) and not _is_over(replica) for key, replica in members.wanted.items())
    return waits and all(_is_over(replica) for replica in covered) and _is_idle(inputs, members)


def _reclaim(inputs: Inputs, record: Queueing, members: Members) -> Queueing:
    """Return the record with the quota of ended and removed replicas reclaimed. It never comes back."""
    workload, admission = inputs.observed.queue.workload, record.admission or {}
    if workload is None:
        return record
    sizes = {task: min(known.size, _size(inputs, task)) for task, known in admission.items()}
    for key, replica in members.leaving.items():
        # A pod that still terminates needs its quota.
        if key.task in sizes and not has_left(replica):
            sizes[key.task] = max(sizes[key.task], min(key.rank + 1, admission[key.task].size))
    ended = Counter(
        key.task for key, replica in members.wanted.items() if _is_over(replica) and key.rank < sizes.get(key.task, 0)
    )
    needed: Counter[str] = Counter()
    for task, size in sizes.items():
        needed[admission[task].pod_set] += size - ended[task]
    reclaimed = {
        name: count
        for name, size in workload.sizes.items()
        if (count := max(record.reclaimed.get(name, 0), size - needed[name])) > 0
    }
    tasks: Mapping[str, TaskAdmission] = {task: replace(known, size=sizes[task]) for task, known in admission.items()}
    return replace(record, admission=tasks, reclaimed=reclaimed)


def _size(inputs: Inputs, task: str) -> int:
    planned = inputs.plan.task.get(task)
    return planned.size if planned is not None else 0


def _is_over(replica: Replica) -> bool:
    return replica.settled and replica.attempt.outcome is not None


def are_gone(inputs: Inputs, members: Members) -> bool:
    """Return whether no pod of the job is left, and none that the mirror does not show."""
    return not inputs.observed.pods and _is_idle(inputs, members)


def _is_idle(inputs: Inputs, members: Members) -> bool:
    """Return whether no process of the job runs. Its ended pods hold no quota."""
    # The mirror may not show the pod of a replica yet.
    recorded = any(not replica.lacks_pod for replica in members.all.values())
    running = any(not pod.ended or pod.lingering for pod in inputs.observed.pods)
    return not (recorded or running or inputs.observed.altered)


def _is_without_workload(queue: ObservedQueue) -> bool:
    return queue.workload is None and queue.state is not KueueState.UNKNOWN


def is_released(queue: ObservedQueue, status: JobStatus) -> bool:
    """Return whether the Workload of an ended job holds nothing any more."""
    if queue.workload is not None:
        return queue.workload.finished and not queue.workload.held
    return status.queueing is None or _is_without_workload(queue)


def is_removed(queue: ObservedQueue, status: JobStatus) -> bool:
    """Return whether the Workload of a deleted job is gone."""
    return _is_without_workload(queue) or (status.queueing is None and queue.workload is None)


def queue_actions(
    inputs: Inputs, status: JobStatus, permit: Permit, members: Members, *, removing: bool
) -> list[Action]:
    """Return what is to be written to the Workload and the gates of the pods. Each action repeats until it is seen."""
    actions: list[Action] = []
    if permit.record is not None:
        actions += [
            UngatePod(name=pod.name, uid=pod.uid)
            for pod in inputs.observed.pods
            if pod.gated and (pod.deleting or pod.ended or permit.record.admission is not None)
        ]
    workload = inputs.observed.queue.workload
    if inputs.observed.queue.state is not KueueState.LISTED:
        return actions
    if workload is None:
        lacks = permit.record is not None and permit.record.admission is None and permit.waits is not None
        if lacks and permit.record is not None and not status.phase.is_terminal:
            actions.append(EnsureWorkload(queue=permit.record.name))
        return actions
    return [*actions, *_workload_actions(inputs, status, permit, members, workload, removing=removing)]


def _workload_actions(
    inputs: Inputs, status: JobStatus, permit: Permit, members: Members, workload: ObservedWorkload, *, removing: bool
) -> list[Action]:
    gone = are_gone(inputs, members)
    if removing:
        return [RemoveWorkload()] if gone else []
    if status.phase.is_terminal:
        return _end(status, workload) if _is_idle(inputs, members) else []
    if inputs.intent.cancel or permit.record is None:
        return [RemoveWorkload()] if permit.record is None and inputs.plan.paused and gone else []
    if permit.record.admission is None and not _fits(inputs, workload):
        return [RemoveWorkload()] if _is_idle(inputs, members) else []
    if inputs.plan.paused or workload.deleting:
        return [RemoveWorkload()] if gone else []
    verdict = workload.verdict
    if isinstance(verdict, Evicted):
        if verdict.holds_quota:
            return [GiveBackQuota(reason=verdict.reason, message=verdict.message)] if gone else []
        resumed = inputs.plan.identity.generation > permit.record.deactivated_in
        return [ActivateWorkload()] if permit.record.deactivated and resumed else []
    if isinstance(verdict, Unadmitted) and not verdict.holds_quota:
        # Kueue accepts the change of a class only while no quota is reserved.
        return [SetPriority()] if has_other_priority(inputs.plan.priority, workload.priority_class) else []
    return _running(status, permit.record, workload)


def _end(status: JobStatus, workload: ObservedWorkload) -> list[Action]:
    if workload.finished and not workload.held:
        return []
    reason = "Succeeded" if status.phase is JobPhase.SUCCEEDED else "Failed"
    return [FinishWorkload(reason=reason, message=status.message or status.reason)]


def _running(status: JobStatus, record: Queueing, workload: ObservedWorkload) -> list[Action]:
    if record.admission is None:
        return []
    actions: list[Action] = []
    if status.phase is JobPhase.RUNNING and not workload.ready:
        actions.append(MarkPodsReady())
    if record.reclaimed and dict(record.reclaimed) != dict(workload.reclaimable):
        actions.append(ReclaimPods(counts=tuple(sorted(record.reclaimed.items()))))
    return actions
