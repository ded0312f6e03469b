"""What is recorded of the Workloads of a job: which replicas each is for, and the quota that they need.

    scale up      replicas that no Workload is for get a further one
    scale down    each Workload gives back the quota of the replicas that have left; one without replicas is removed

A new one is made only while none waits, so the later of two scale-ups follows the earlier one. If the replicas change
that one waits for, it is removed and made again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from app.domain.plan import JobPlan, Rank
from app.domain.queueing.admission import (
    Admitted,
    PodSetAdmission,
    Queueing,
    RecordedWorkload,
    TaskAdmission,
    task_admissions,
    with_topology,
)
from app.domain.queueing.workload import pod_sets
from app.domain.queueing.workload_status import Evicted, ObservedWorkload, Unadmitted, Verdict
from app.domain.reconcile.resizing import Members, has_left
from app.domain.reconcile.values import Inputs
from app.domain.status.observed import KueueState, ObservedPod, ObservedQueue
from app.domain.status.records import Replica
from app.domain.vocabulary import PendingCode

CREATING: Final = "the Workload of the job is being created"
MOST_FURTHER: Final = 64  # Workloads that scale-ups add to one admission: a reconcile compares each with all replicas
# The code of the wait that follows an eviction with this reason. After any other, such as a preemption, the job waits
# for quota.
_CODES_AFTER: Final = {
    "AdmissionCheck": PendingCode.ADMISSION_CHECKS,
    "ClusterQueueStopped": PendingCode.QUEUE_STOPPED,
    "LocalQueueStopped": PendingCode.QUEUE_STOPPED,
    "PodsReadyTimeout": PendingCode.REQUEUE_BACK_OFF,
    "WorkloadDeleted": PendingCode.WAITING_FOR_KUEUE,
    "WorkloadFinished": PendingCode.WAITING_FOR_KUEUE,
}

Ranks = Mapping[str, tuple[int, int]]
"""The ranks of tasks, as half-open ranges."""


def creating(queue: str) -> Unadmitted:
    return Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message=f"{CREATING} in the queue {queue}")


def wait_after(evicted: Evicted) -> Unadmitted:
    """Return the wait that follows an eviction.

    A deactivated Workload is that of a scale-up: a job whose first one is deactivated is paused and does not wait.
    """
    message = f"{evicted.reason}: {evicted.message}"
    if evicted.is_deactivated:
        message += ". An administrator may activate it, and a scale-down and another scale-up make a new one"
    return Unadmitted(code=_CODES_AFTER.get(evicted.reason, PendingCode.WAITING_FOR_QUOTA), message=message)


def workload_for(plan: JobPlan, number: int, ranks: Ranks) -> RecordedWorkload:
    """Return the record of a Workload for these replicas that is not admitted."""
    counts = {task: end - first for task, (first, end) in ranks.items()}
    tasks = {
        task: TaskAdmission(pod_set=pod_set.name, from_rank=ranks[task][0], size=ranks[task][1], pods=PodSetAdmission())
        for pod_set in pod_sets(plan, counts)
        for task in pod_set.tasks
    }
    return RecordedWorkload(number=number, tasks=tasks)


def first_workload(plan: JobPlan, record: Queueing) -> RecordedWorkload:
    """Return the first Workload of a job: before its admission, it is for all replicas."""
    if record.admission is not None:
        return record.first
    return workload_for(plan, 0, {task.name: (0, task.size) for task in plan.tasks})


def is_outdated(known: RecordedWorkload, observed: ObservedWorkload, queue: str, ended: Iterable[Rank]) -> bool:
    """Return whether a Workload that is not admitted must be made again: it is for other pods or another queue.

    `ended` are the replicas that need no quota any more.
    """
    if observed.sizes != known.sizes or observed.queue != queue:
        return True
    match observed.verdict:
        case Admitted() | Unadmitted(holds_quota=True):
            # The number stays while Kueue has reserved quota for the other pods.
            without = _count_ended(known, ended)
            return any(count > without[name] for name, count in observed.reclaimable.items())
    return False


def count_reclaimable(known: RecordedWorkload, ended: Iterable[Rank]) -> Mapping[str, int]:
    """Return how many pods of each pod set of a Workload that waits need no quota, because the replicas have `ended`.

    One pod of each pod set remains: Kueue 0.15 never admits a pod set without pods in a flavor with a topology.
    """
    sizes = known.sizes
    counts = {name: min(count, sizes[name] - 1) for name, count in _count_ended(known, ended).items()}
    return {name: count for name, count in counts.items() if count}


def _count_ended(known: RecordedWorkload, ended: Iterable[Rank]) -> Counter[str]:
    return Counter(known.tasks[key.task].pod_set for key in ended if known.is_for(key))


def judge(known: RecordedWorkload, observed: ObservedWorkload | None, queue: str, ended: Iterable[Rank]) -> Verdict:
    """Return what Kueue has decided about a Workload, compared with what is recorded of it."""
    if observed is None:
        gone = Evicted(reason="WorkloadDeleted", message="the Workload of the job is gone", holds_quota=False)
        return gone if known.admitted else creating(queue)
    verdict = observed.verdict
    if isinstance(verdict, Unadmitted) and known.admitted and not verdict.holds_quota:
        return Evicted(reason="AdmissionLost", message=verdict.message, holds_quota=False)
    if isinstance(verdict, Admitted) and not known.admitted and is_outdated(known, observed, queue, ended):
        return creating(queue)
    return verdict


def admit(inputs: Inputs, known: RecordedWorkload, verdict: Admitted, observed: ObservedWorkload) -> RecordedWorkload:
    """Return the record of a Workload whose admission begins, or goes on with the present topology."""
    if known.admitted:
        return replace(known, tasks=with_topology(known.tasks, verdict), evicted="")
    # Postgres does not keep the order of the tasks.
    tasks = workload_for(inputs.plan, known.number, ranks_of(known)).tasks
    admitted = task_admissions(verdict, tasks, ended_ranks(inputs))
    return replace(known, tasks=admitted, admitted=True, reclaimed=dict(observed.reclaimable), evicted="")


def ended_ranks(inputs: Inputs) -> list[Rank]:
    """Return the replicas that have ended and are not restarted."""
    return [key for key, replica in inputs.recorded.replicas.items() if is_over(replica)]


def ranks_of(known: RecordedWorkload) -> Ranks:
    return {name: (task.from_rank, task.size) for name, task in known.tasks.items()}


def next_workloads(inputs: Inputs, record: Queueing, evicted: Iterable[int], members: Members) -> Queueing:
    """Return the record of an admitted job after its replicas have been reconciled.

    `evicted` are the numbers of the further Workloads that Kueue evicts.
    """
    queue = inputs.observed.queue
    first = _without_left(inputs, record.first, members)
    further: list[RecordedWorkload] = []
    for known in record.further:
        stays = known.admitted and (known.number not in evicted or is_busy(inputs, known, members))
        item = _without_left(inputs, replace(known, admitted=stays), members)
        if not item.is_empty or item.number in queue.workloads:
            further.append(item)
    record = replace(record, admission=first.tasks, reclaimed=first.reclaimed, further=tuple(further))
    waits = any(not item.admitted or item.number in evicted for item in further)
    if waits or len(further) >= MOST_FURTHER:
        return record
    ranks = _find_uncovered(inputs, record, members)
    if not ranks:
        return record
    number = 1 + max([0, *queue.workloads, *(item.number for item in further)])
    return replace(record, further=(*further, workload_for(inputs.plan, number, ranks)))


def is_without_workload(queue: ObservedQueue) -> bool:
    return not queue.workloads and queue.state is not KueueState.UNKNOWN


def are_gone(inputs: Inputs, members: Members) -> bool:
    """Return whether no pod of the job is left, and none that the mirror does not show."""
    return not inputs.observed.pods and is_idle(inputs, members)


def is_idle(inputs: Inputs, members: Members) -> bool:
    """Return whether no process of the job runs. Its ended pods hold no quota."""
    # The mirror may not show the pod of a replica yet.
    recorded = any(not replica.lacks_pod for replica in members.all.values())
    return not (recorded or any(runs(pod) for pod in inputs.observed.pods) or inputs.observed.altered)


def is_busy(inputs: Inputs, known: RecordedWorkload, members: Members) -> bool:
    """Return whether a process of the replicas runs that the Workload is for."""
    recorded = any(known.is_for(key) and not replica.lacks_pod for key, replica in members.all.items())
    running = any(known.is_for(pod.key) and runs(pod) for pod in inputs.observed.pods)
    return recorded or running or bool(inputs.observed.altered)


def runs(pod: ObservedPod) -> bool:
    """Return whether a process of the pod runs. An ended pod holds no quota."""
    return not pod.ended or pod.lingering


def is_over(replica: Replica) -> bool:
    return replica.settled and replica.attempt.outcome is not None


def keeps_running(replicas: Iterable[Replica]) -> bool:
    """Return whether a replica of an ended job runs on, because nothing stops it."""
    return any(not replica.lacks_pod and replica.attempt.stopping is None for replica in replicas)


def _is_done(inputs: Inputs, replica: Replica) -> bool:
    """Return whether no attempt of the replica needs quota any more. An ended job begins none."""
    return replica.lacks_pod if inputs.recorded.status.phase.is_terminal else is_over(replica)


def _without_left(inputs: Inputs, known: RecordedWorkload, members: Members) -> RecordedWorkload:
    """Return the record with the quota of ended and removed replicas reclaimed. It never comes back."""
    sizes = {name: max(task.from_rank, min(task.size, _size(inputs, name))) for name, task in known.tasks.items()}
    # A pod that still terminates needs its quota.
    needed = {key for key, replica in members.leaving.items() if not has_left(replica)}
    needed |= {pod.key for pod in inputs.observed.pods if runs(pod)}
    for key in needed:
        if known.is_for(key):
            sizes[key.task] = max(sizes[key.task], key.rank + 1)
    if not known.admitted:
        waiting = any(known.is_for(key) and not _is_done(inputs, replica) for key, replica in members.wanted.items())
        ranks = {name: (begin, sizes[name]) for name, (begin, _) in ranks_of(known).items()} if waiting else {}
        return replace(workload_for(inputs.plan, known.number, ranks), evicted=known.evicted)
    if any(task.size != sizes[name] for name, task in known.tasks.items()):
        known = replace(known, tasks={name: replace(task, size=sizes[name]) for name, task in known.tasks.items()})
    reclaimed = _count_reclaimed(inputs, known, members)
    return known if reclaimed == known.reclaimed else replace(known, reclaimed=reclaimed)


def _size(inputs: Inputs, task: str) -> int:
    planned = inputs.plan.task.get(task)
    return planned.size if planned is not None else 0


def _count_reclaimed(inputs: Inputs, known: RecordedWorkload, members: Members) -> Mapping[str, int]:
    """Return how many pods of each pod set have no use for their quota any more."""
    workload = inputs.observed.queue.workloads.get(known.number)
    if workload is None:
        return known.reclaimed
    needed = Counter(known.sizes)
    needed.subtract(
        known.tasks[key.task].pod_set
        for key, replica in members.wanted.items()
        if known.is_for(key) and _is_done(inputs, replica)
    )
    # Kueue accepts no smaller number, also if another client has written the present one.
    counts = {
        name: max(known.reclaimed.get(name, 0), workload.reclaimable.get(name, 0), size - needed[name])
        for name, size in workload.sizes.items()
    }
    return {name: count for name, count in counts.items() if count > 0}


def _find_uncovered(inputs: Inputs, record: Queueing, members: Members) -> Ranks:
    """Return the first replicas of each task that no Workload is for, one after the other."""
    ranks: dict[str, tuple[int, int]] = {}
    for task in inputs.plan.tasks:
        parts = [known.tasks[task.name] for known in (record.first, *record.further) if task.name in known.tasks]
        first = 0
        for begin, end in sorted([*((part.from_rank, part.size) for part in parts), (task.size, task.size)]):
            last = min(begin, task.size)
            keys = (Rank(task.name, rank) for rank in range(first, last))
            waiting = [key.rank for key in keys if not _is_done(inputs, members.wanted[key])]
            if waiting:
                ranks[task.name] = (waiting[0], last)
                break
            first = max(first, end)
    return ranks
