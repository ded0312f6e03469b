"""What is written to the Workloads of a job, and to Kueue's gates of its pods. Each action repeats until it is seen."""

from collections import Counter
from collections.abc import Iterable, Mapping

from app.domain.queueing.admission import Admitted, Queueing, RecordedWorkload
from app.domain.queueing.priorities import has_other_priority
from app.domain.queueing.workload_status import Evicted, ObservedWorkload, Unadmitted
from app.domain.reconcile.actions import (
    Action,
    ActivateWorkload,
    EnsureWorkload,
    FinishWorkload,
    GiveBackQuota,
    LabelWorkload,
    ReclaimPods,
    RemoveWorkload,
    ReportPodsReady,
    SetPriority,
    UngatePod,
)
from app.domain.reconcile.queues.admissions import (
    are_gone,
    count_reclaimable,
    ended_ranks,
    first_workload,
    is_busy,
    is_idle,
    is_outdated,
    is_without_workload,
    keeps_running,
    runs,
)
from app.domain.reconcile.queues.permit import Permit, is_activated
from app.domain.reconcile.resizing import Members
from app.domain.reconcile.values import Inputs
from app.domain.status.observed import KueueState, ObservedQueue
from app.domain.status.records import JobStatus
from app.domain.status.rollup import has_to_start
from app.domain.vocabulary import JobPhase


def is_released(queue: ObservedQueue, status: JobStatus) -> bool:
    """Return whether no Workload of an ended job holds anything any more."""
    if queue.workloads:
        return all(workload.finished and not workload.held for workload in queue.workloads.values())
    return status.queueing is None or is_without_workload(queue)


def is_removed(queue: ObservedQueue, status: JobStatus) -> bool:
    """Return whether the Workloads of a deleted job are gone."""
    return is_without_workload(queue) or (status.queueing is None and not queue.workloads)


def queue_actions(
    inputs: Inputs, status: JobStatus, permit: Permit, members: Members, *, removing: bool
) -> list[Action]:
    """Return the actions that write the Workloads of the job and remove the scheduling gates of its pods."""
    record, queue = permit.record, inputs.observed.queue
    ungated: list[Action] = []
    if record is not None:
        ungated = [
            UngatePod(name=pod.name, uid=pod.uid)
            for pod in inputs.observed.pods
            # A captured pod must not start: another one replaces it.
            if pod.gated and (pod.deleting or pod.ended or (record.admission is not None and not pod.captured))
        ]
    if queue.state is not KueueState.LISTED:
        return ungated
    labelled = [LabelWorkload(number=number) for number, found in queue.workloads.items() if not found.labelled]
    return [*ungated, *labelled, *_workload_actions(inputs, status, permit, members, removing=removing)]


def _workload_actions(
    inputs: Inputs, status: JobStatus, permit: Permit, members: Members, *, removing: bool
) -> list[Action]:
    record, workloads = permit.record, inputs.observed.queue.workloads
    if removing or (inputs.plan.paused and not status.phase.is_terminal):
        return _removals(workloads) if are_gone(inputs, members) else []
    if status.phase.is_terminal:
        return _ends(inputs, status, record, members)
    if inputs.intent.cancel or record is None:
        return []
    known = [first_workload(inputs.plan, record), *record.further]
    actions: list[Action] = []
    if all(record.admission_of(pod.key) is not None for pod in inputs.observed.pods if runs(pod)):
        # A Workload that is not on record was created late, or belongs to a former admission.
        actions += _removals(set(workloads) - {item.number for item in known})
    for item in known:
        observed = workloads.get(item.number)
        if observed is not None:
            actions += _changes(inputs, record, members, item, observed)
        elif not item.admitted and (permit.wait is not None if item.number == 0 else not item.is_empty):
            actions.append(EnsureWorkload(number=item.number, queue=record.name, ranks=_ranks(item)))
    return actions


def _ranks(known: RecordedWorkload) -> tuple[tuple[str, int, int], ...]:
    """Return the replicas that a further Workload is for, as `EnsureWorkload` names them."""
    return tuple(sorted((task, part.from_rank, part.size) for task, part in known.tasks.items() if known.number))


def _removals(numbers: Iterable[int]) -> list[Action]:
    return [RemoveWorkload(number=number) for number in sorted(numbers)]


def _ends(inputs: Inputs, status: JobStatus, record: Queueing | None, members: Members) -> list[Action]:
    """Return the writes to the Workloads of an ended job. Each is needed while replicas run that it is for."""
    reason = "Succeeded" if status.phase is JobPhase.SUCCEEDED else "Failed"
    known = {item.number: item for item in (record.first, *record.further)} if record is not None else {}
    keeps = keeps_running(members.all.values())
    actions: list[Action] = []
    for number, workload in inputs.observed.queue.workloads.items():
        item = known.get(number)
        is_of_all = number == 0 and not is_idle(inputs, members)
        if is_of_all or (number and item is not None and is_busy(inputs, item, members)):
            actions += _reclaims(number, item.reclaimed, workload) if item is not None else []
            # The job may have ended when its last replica started, and Kueue evicts a Workload that is not ready.
            if keeps and not workload.ready and isinstance(workload.verdict, Admitted):
                actions.append(ReportPodsReady(number=number))
        elif workload.held or not workload.finished:
            actions.append(FinishWorkload(number=number, reason=reason, message=status.message or status.reason))
    return actions


def _changes(
    inputs: Inputs, record: Queueing, members: Members, known: RecordedWorkload, observed: ObservedWorkload
) -> list[Action]:
    """Return the writes to a Workload that is on record and in the cluster."""
    number, verdict = known.number, observed.verdict
    if number and known.is_empty:
        return [] if is_busy(inputs, known, members) else _removals([number])
    if known.admitted:
        return [] if isinstance(verdict, Evicted) else _running(inputs, members, known, observed)
    if not is_idle(inputs, members) if number == 0 else is_busy(inputs, known, members):
        return []
    ended = ended_ranks(inputs)
    is_deactivated = isinstance(verdict, Evicted) and verdict.is_deactivated
    # Kueue never admits a finished one again. One that is deactivated stays, because another one would be active.
    is_useless = observed.finished or is_outdated(known, observed, record.name, ended)
    if observed.deleting or (is_useless and not is_deactivated):
        return _removals([number])
    if isinstance(verdict, Unadmitted) and not verdict.holds_quota:
        # Kueue accepts a class of another kind only while no quota is reserved.
        if has_other_priority(inputs.plan.priority, observed.priority_class):
            return [SetPriority(number=number, ranks=_ranks(known))]
        return _reclaims(number, count_reclaimable(known, ended), observed)
    if not isinstance(verdict, Evicted):
        return []
    if verdict.holds_quota:
        # In the same write: Kueue 0.15 can miss a change of a Workload that it considers at this moment.
        reclaimed = tuple(sorted(count_reclaimable(known, ended).items()))
        return [GiveBackQuota(number=number, reason=verdict.reason, message=verdict.message, reclaimed=reclaimed)]
    resumed = record.deactivated and is_activated(inputs, record)
    return [ActivateWorkload()] if number == 0 and resumed else []


def _running(inputs: Inputs, members: Members, known: RecordedWorkload, observed: ObservedWorkload) -> list[Action]:
    actions: list[Action] = []
    waits = any(known.is_for(key) and has_to_start(item) for key, item in members.wanted.items())
    if waits is observed.ready and not (waits and known.number == 0 and _has_needed(inputs, members)):
        actions.append(ReportPodsReady(number=known.number, ready=not waits))
    return [*actions, *_reclaims(known.number, known.reclaimed, observed)]


def _has_needed(inputs: Inputs, members: Members) -> bool:
    """Return whether the job can work while other replicas must start again. Kueue would evict all of them."""
    able = Counter(key.task for key, replica in members.wanted.items() if not has_to_start(replica))
    return all(able[task.name] >= task.needed for task in inputs.plan.tasks)


def _reclaims(number: int, reclaimed: Mapping[str, int], observed: ObservedWorkload) -> list[Action]:
    if dict(reclaimed) == dict(observed.reclaimable):
        return []
    return [ReclaimPods(number=number, reclaimed=tuple(sorted(reclaimed.items())))]
