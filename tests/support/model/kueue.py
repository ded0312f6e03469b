"""Kueue as a model: the Workloads of one job and their quota. It holds the laws of queues at each write.

no pod without quota        a pod is created only within the quota that its job holds
no quota without its pods   quota is given back only when no process of the job needs it
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, ObjectCondition
from app.domain.kubernetes.queueing import (
    ClassRef,
    FlavorSpec,
    PodSetAssignment,
    PodSetCount,
    Workload,
    WorkloadAdmission,
    WorkloadSpec,
    WorkloadStatus,
)
from app.domain.plan import JobPlan, PriorityClassRef
from app.domain.queueing.workload import pod_sets
from app.domain.queueing.workload_status import observe_workload
from app.domain.reconcile.actions import (
    ActivateWorkload,
    EnsureWorkload,
    FinishWorkload,
    GiveBackQuota,
    ReclaimPods,
    RemoveWorkload,
    ReportPodsReady,
    SetPriority,
    WorkloadAction,
)
from app.domain.status.observed import KueueState, ObservedQueue

FLAVOR = "model"
FLAVORS = {FLAVOR: FlavorSpec(node_labels={"pool": "a"}, tolerations=({"key": "a", "operator": "Exists"},))}
_DELETED = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class ModelWorkload:
    uid: str
    queue: str
    sizes: Mapping[str, int]
    priority: PriorityClassRef | int | None = None
    active: bool = True
    reserved: bool = False
    evicted: str = ""
    deleting: bool = False
    held: bool = True
    ready: bool = False
    finished: bool = False
    reclaimable: Mapping[str, int] = field(default_factory=dict)
    admitted: Mapping[str, int] = field(default_factory=dict)

    def raw(self) -> Workload:
        known = {
            "QuotaReserved": self.reserved,
            "Admitted": self.reserved,
            "Evicted": bool(self.evicted),
            "PodsReady": self.ready,
            "Finished": self.finished,
        }
        conditions = tuple(
            ObjectCondition(type=kind, status=str(value), reason=self.evicted or kind, message="said Kueue")
            for kind, value in known.items()
        )
        assigned = tuple(
            PodSetAssignment(name=name, count=count, flavors={"cpu": FLAVOR}) for name, count in self.admitted.items()
        )
        return Workload(
            metadata=Metadata(
                uid=self.uid,
                finalizers=(labels.ADMISSION_FINALIZER,) if self.held else (),
                deletion_timestamp=_DELETED if self.deleting else None,
            ),
            spec=WorkloadSpec(
                active=self.active,
                queue_name=self.queue,
                pod_sets=_counts(self.sizes),
                priority_class_ref=_class_ref(self.priority),
            ),
            status=WorkloadStatus(
                conditions=conditions,
                admission=WorkloadAdmission(pod_set_assignments=assigned) if self.reserved else None,
                reclaimable_pods=_counts(self.reclaimable),
            ),
        )


def _class_ref(priority: PriorityClassRef | int | None) -> ClassRef | None:
    return ClassRef(kind=priority.kind, name=priority.name) if isinstance(priority, PriorityClassRef) else None


def _counts(sizes: Mapping[str, int]) -> tuple[PodSetCount, ...]:
    return tuple(PodSetCount(name=name, count=count) for name, count in sizes.items())


@dataclass(slots=True, kw_only=True)
class ModelKueue:
    """Kueue with the Workloads of one job, by their numbers. `returns` counts how often quota was given back."""

    state: KueueState = KueueState.LISTED
    workloads: dict[int, ModelWorkload] = field(default_factory=dict)
    made: int = 0
    returns: int = 0

    @property
    def workload(self) -> ModelWorkload | None:
        return self.workloads.get(0)

    def observed(self) -> ObservedQueue:
        if self.state is not KueueState.LISTED:
            return ObservedQueue(state=self.state)
        observed = {number: observe_workload(found.raw(), FLAVORS) for number, found in self.workloads.items()}
        return ObservedQueue(state=self.state, workloads=observed)

    def total(self) -> Mapping[str, int]:
        """The pods of each pod set that the job holds quota for."""
        counts: Counter[str] = Counter()
        for found in self.workloads.values():
            if found.reserved:
                counts.update(found.sizes)
                counts.subtract(found.reclaimable)
        return counts

    # Kueue and its administrators. Each acts on the Workload that `index` selects.

    def _pick(self, index: int) -> ModelWorkload | None:
        numbers = sorted(self.workloads)
        return self.workloads[numbers[index % len(numbers)]] if numbers else None

    def admit(self) -> bool:
        """Admit what waits."""
        waiting = [
            found
            for found in self.workloads.values()
            if not found.reserved and found.active and not found.deleting and not found.finished
        ]
        for found in waiting:
            found.reserved, found.evicted = True, ""
            found.admitted = {name: size - found.reclaimable.get(name, 0) for name, size in found.sizes.items()}
        return bool(waiting)

    def evict(self, reason: str = "Preempted", index: int = 0) -> None:
        found = self._pick(index)
        if found is not None and found.reserved and not found.finished:
            found.evicted = reason

    def set_active(self, *, active: bool, index: int = 0) -> None:
        found = self._pick(index)
        if found is None or found.finished:
            return
        found.active = active
        if not active:
            self.evict("Deactivated", index)

    def activate(self) -> None:
        for index in range(len(self.workloads)):
            self.set_active(active=True, index=index)

    def delete(self, index: int = 0) -> None:
        found = self._pick(index)
        if found is not None:
            found.deleting = True
            self._collect()

    def _collect(self) -> None:
        self.workloads = {number: found for number, found in self.workloads.items() if found.held or not found.deleting}

    # jobgate

    def check_quota(self, running: Mapping[str, int]) -> None:
        """Check that the quota of the job covers so many pods of each pod set."""
        free = self.total()
        assert all(count <= free.get(name, 0) for name, count in running.items()), (running, self.workloads)

    def act(self, action: WorkloadAction, plan: JobPlan, running: Mapping[str, int]) -> None:
        """Carry out an action of jobgate. `running` counts the pods of each pod set that have processes."""
        if isinstance(action, EnsureWorkload):
            if action.number not in self.workloads:
                self.made += 1
                of_tasks = {task: end - first for task, first, end in action.ranks} or None
                sizes = {item.name: item.count for item in pod_sets(plan, of_tasks)}
                self.workloads[action.number] = ModelWorkload(
                    uid=f"w{self.made}", queue=action.queue, sizes=sizes, priority=plan.priority
                )
            return
        found = self.workloads.get(action.number)
        if found is None:
            return
        match action:
            case GiveBackQuota() | RemoveWorkload() | FinishWorkload():
                held = found.reserved
                self._give_back(found, action)
                if held:
                    self.check_quota(running)
            case SetPriority():
                assert not found.reserved, "Kueue refuses another class while quota is reserved"
                assert found.priority != plan.priority
                found.priority = plan.priority
            case ActivateWorkload():
                found.active = True
            case ReportPodsReady(ready=ready):
                found.ready = ready
            case ReclaimPods(reclaimed=reclaimed):
                self._reclaim(found, dict(reclaimed))
                self.check_quota(running)

    @staticmethod
    def _reclaim(found: ModelWorkload, counts: Mapping[str, int]) -> None:
        before, found.reclaimable = found.reclaimable, counts
        assert not found.reserved or all(counts.get(name, 0) >= count for name, count in before.items())

    def _give_back(self, found: ModelWorkload, action: WorkloadAction) -> None:
        self.returns += found.reserved
        found.reserved, found.ready = False, False
        match action:
            case GiveBackQuota(reclaimed=reclaimed):
                found.reclaimable = dict(reclaimed)
            case FinishWorkload():
                found.finished, found.held = True, False
            case RemoveWorkload():
                found.deleting, found.held = True, False
        self._collect()
