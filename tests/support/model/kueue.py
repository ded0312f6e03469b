"""Kueue as a model: the Workload of one job and its quota. It holds the laws of queues at each write.

no pod without quota        a pod is created only within the quota that its job holds
no quota without its pods   quota is given back only when no process of the job runs
"""

from collections.abc import Collection, Mapping
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
from app.domain.queueing.admission import observe_workload
from app.domain.queueing.workload import pod_sets
from app.domain.reconcile.actions import (
    ActivateWorkload,
    EnsureWorkload,
    FinishWorkload,
    GiveBackQuota,
    MarkPodsReady,
    QueueAction,
    ReclaimPods,
    RemoveWorkload,
    SetPriority,
)
from app.domain.status.observed import KueueState, ObservedQueue

FLAVOR = "model"
FLAVORS = {FLAVOR: FlavorSpec(node_labels={"pool": "a"}, tolerations=({"key": "a", "operator": "Exists"},))}
_DELETED = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class ModelWorkload:
    uid: str
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
        assigned = tuple(PodSetAssignment(name=name, flavors={"cpu": FLAVOR}) for name in self.sizes)
        return Workload(
            metadata=Metadata(
                uid=self.uid,
                finalizers=(labels.ADMISSION_FINALIZER,) if self.held else (),
                deletion_timestamp=_DELETED if self.deleting else None,
            ),
            spec=WorkloadSpec(
                active=self.active, pod_sets=_counts(self.sizes), priority_class_ref=_class_ref(self.priority)
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
    """Kueue with the Workload of one job. `returns` counts how often its quota was given back or lost."""

    state: KueueState = KueueState.LISTED
    workload: ModelWorkload | None = None
    made: int = 0
    returns: int = 0

    def observed(self) -> ObservedQueue:
        found = self.workload
        workload = observe_workload(found.raw(), FLAVORS) if found is not None else None
        return ObservedQueue(state=self.state, workload=workload)

    # Kueue and its administrators

    def admit(self) -> bool:
        """Admit the job if it waits."""
        found = self.workload
        if found is None or found.reserved or not found.active or found.deleting or found.finished:
            return False
        found.reserved, found.evicted = True, ""
        return True

    def evict(self, reason: str = "Preempted") -> None:
        if self.workload is not None and self.workload.reserved and not self.workload.finished:
            self.workload.evicted = reason

    def set_active(self, *, active: bool) -> None:
        if self.workload is None or self.workload.finished:
            return
        self.workload.active = active
        if not active:
            self.evict("Deactivated")

    def delete(self) -> None:
        if self.workload is not None:
            self.workload.deleting = True
            self._collect()

    def _collect(self) -> None:
        if self.workload is not None and self.workload.deleting and not self.workload.held:
            self.workload = None

    # jobgate

    def check_quota(self, running: Mapping[str, int]) -> None:
        """Check that the quota of the job covers so many pods of each pod set."""
        found = self.workload
        assert found is not None, "a pod is created without a Workload"
        assert found.reserved, f"a pod is created without quota: {found}"
        free = {name: size - found.reclaimable.get(name, 0) for name, size in found.sizes.items()}
        assert all(count <= free.get(name, 0) for name, count in running.items()), (running, found)

    def act(self, action: QueueAction, plan: JobPlan, running: Collection[str]) -> None:
        """Carry out an action of jobgate. `running` are the pods of the job with processes."""
        if isinstance(action, EnsureWorkload):
            if self.workload is None:
                self.made += 1
                sizes = {item.name: item.count for item in pod_sets(plan)}
                self.workload = ModelWorkload(uid=f"w{self.made}", sizes=sizes, priority=plan.priority)
            return
        found = self.workload
        if found is None:
            return
        match action:
            case GiveBackQuota() | RemoveWorkload() | FinishWorkload():
                assert not running, f"quota is given back while {running} run"
                self._give_back(found, action)
            case SetPriority():
                assert not found.reserved, "Kueue refuses another class while quota is reserved"
                assert found.priority != plan.priority
                found.priority = plan.priority
            case ActivateWorkload():
                found.active = True
            case MarkPodsReady():
                found.ready = True
            case ReclaimPods(counts=counts):
                before, found.reclaimable = found.reclaimable, dict(counts)
                assert found.reserved, "only an admitted Workload has quota to give back"
                assert all(found.reclaimable.get(name, 0) >= count for name, count in before.items())

    def _give_back(self, found: ModelWorkload, action: QueueAction) -> None:
        self.returns += found.reserved
        found.reserved, found.ready = False, False
        match action:
            case FinishWorkload():
                found.finished, found.held = True, False
            case RemoveWorkload():
                found.deleting, found.held = True, False
        self._collect()
