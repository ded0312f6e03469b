"""The priority of a Workload: that of a class, or a number. Kueue's own integrations use the same order.

The first one that a job has counts:

label kueue.x-k8s.io/priority-class    a WorkloadPriorityClass
priority of the kind                   GenericJob's scheduler.t9kScheduler.priority
priorityClassName of the pods          a PriorityClass of Kubernetes, that of the first task which has one
neither                                the PriorityClass of Kubernetes that is the default of the cluster, or 0
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.domain.plan import JobPlan, Manifest, PriorityClassKind, PriorityClassRef

PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
GROUPS: Final[Mapping[PriorityClassKind, str]] = {
    PriorityClassKind.WORKLOAD: "kueue.x-k8s.io",
    PriorityClassKind.POD: "scheduling.k8s.io",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """The priority of a Workload, and the class that it comes from."""

    value: int = 0
    of: PriorityClassRef | None = None

    def patch(self) -> Manifest:
        """Return the merge patch of the spec of a Workload. Without a class, it removes a former one."""
        of = self.of
        ref = {"group": GROUPS[of.kind], "kind": of.kind.value, "name": of.name} if of is not None else None
        return {"priority": self.value, "priorityClassRef": ref}


def requested_priority(manifest: Manifest, plan: JobPlan) -> PriorityClassRef | int | None:
    """Return the class that an accepted manifest requests, or the priority of its kind; None if it requests neither."""
    named = (manifest["metadata"].get("labels") or {}).get(PRIORITY_CLASS)
    if named:
        return PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name=named)
    if plan.priority is not None:
        return plan.priority
    names = (task.template["spec"].get("priorityClassName") for task in plan.tasks if task.size)
    name = next(filter(None, names), None)
    return PriorityClassRef(kind=PriorityClassKind.POD, name=name) if name is not None else None


def known_priority(requested: PriorityClassRef | int | None) -> int:
    """Return the priority as far as it is known without the cluster: that of the kind, or 0."""
    return requested if isinstance(requested, int) else 0


def has_other_priority(requested: PriorityClassRef | int | None, current: PriorityClassRef | None) -> bool:
    """Return whether an edit of the manifest has changed the class that the Workload must have.

    An administrator may set another number, so a priority is compared by its class only.
    """
    if isinstance(requested, PriorityClassRef):
        return requested != current
    return current is not None and current.kind is PriorityClassKind.WORKLOAD


def default_priority(classes: Iterable[Mapping[str, Any]]) -> Priority:
    """Return the priority of a job that requests none. Of several default classes, the lowest one counts."""
    defaults = [found for found in classes if found.get("globalDefault")]
    if not defaults:
        return Priority()
    lowest = min(defaults, key=lambda found: int(found.get("value", 0)))
    return priority_of(PriorityClassRef(kind=PriorityClassKind.POD, name=lowest["metadata"]["name"]), lowest)


def priority_of(ref: PriorityClassRef, found: Mapping[str, Any]) -> Priority:
    """Return the priority that a class of the cluster stands for."""
    return Priority(value=int(found.get("value", 0)), of=ref)
