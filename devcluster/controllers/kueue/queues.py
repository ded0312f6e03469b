"""The status of ClusterQueues and LocalQueues. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from devcluster.controllers.kueue.cohorts import quotas_of
from devcluster.controllers.kueue.workloads import Usage, has_condition, is_pending, is_reserving, total, usage
from devcluster.formats.objects import Object, meta, set_condition, spec
from devcluster.formats.quantity import parse, render_canonical


def is_stopped(queue: Object) -> bool:
    return str(spec(queue).get("stopPolicy", "None")) != "None"


def drains(queue: Object) -> bool:
    """Return whether the Workloads that a queue has admitted must go too."""
    return spec(queue).get("stopPolicy") == "HoldAndDrain"


def groups_of(queue: Object) -> list[Object]:
    found: list[Object] = spec(queue).get("resourceGroups") or []
    return found


def flavors_of(queue: Object) -> list[tuple[str, list[str]]]:
    """Return the flavors of a ClusterQueue in their order, with the names of their resources."""
    return [
        (flavor["name"], sorted(resource["name"] for resource in flavor.get("resources") or []))
        for group in groups_of(queue)
        for flavor in group.get("flavors") or []
    ]


def problem_of(queue: Object, known_flavors: Iterable[str]) -> tuple[str, str]:
    """Return the reason and message for which a ClusterQueue admits nothing, or two empty strings."""
    if is_stopped(queue):
        return "Stopped", "Can't admit new workloads: is stopped."
    missing = [name for name, _ in flavors_of(queue) if name not in known_flavors]
    if missing:
        listed = ",".join(missing)
        return "FlavorNotFound", f"Can't admit new workloads: references missing ResourceFlavor(s): {listed}."
    return "", ""


@dataclass(slots=True)
class QueueCounts:
    """The Workloads of one queue."""

    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    used: Usage = field(default_factory=dict)

    def add(self, workload: Object, *, stopped: bool) -> None:
        if is_reserving(workload):
            self.reserving += 1
            self.admitted += has_condition(workload, "Admitted")
            self.used = total((self.used, usage(workload)))
        elif is_pending(workload) and not stopped:
            self.pending += 1


def cluster_queue_status(queue: Object, counts: QueueCounts, problem: tuple[str, str]) -> Object:
    found = _status(queue, counts, flavors_of(queue), borrowed=True)
    reason, message = problem
    if reason:
        set_condition(found, "Active", "False", reason=reason, message=message)
    else:
        set_condition(found, "Active", "True", reason="Ready", message="Can admit new workloads")
    return found


def local_queue_status(queue: Object, counts: QueueCounts, target: Object | None, *, is_usable: bool) -> Object:
    found = _status(queue, counts, flavors_of(target) if target else [], borrowed=False)
    if is_stopped(queue):
        set_condition(found, "Active", "False", reason="Stopped", message="LocalQueue is stopped")
    elif not is_usable:
        reason = "ClusterQueueIsInactive" if target else "ClusterQueueDoesNotExist"
        message = "Can't submit new workloads to clusterQueue"
        set_condition(found, "Active", "False", reason=reason, message=message)
    else:
        set_condition(found, "Active", "True", reason="Ready", message="Can submit new workloads to localQueue")
    return found


def _borrowed_amount(queue: Object, flavor: str, resource: str, counts: QueueCounts) -> str:
    used, quota = counts.used.get((flavor, resource), Decimal(0)), quotas_of(queue)[flavor, resource]
    return render_canonical(resource, max(Decimal(0), used - parse(quota["nominalQuota"])))


def _status(queue: Object, counts: QueueCounts, flavors: list[tuple[str, list[str]]], *, borrowed: bool) -> Object:
    """Return the queue with its counts. What is reserved is also in use: without checks, all is admitted at once."""
    amounts = [
        {
            "name": flavor,
            "resources": [
                {"name": name, "total": render_canonical(name, counts.used.get((flavor, name), Decimal(0)))}
                | ({"borrowed": _borrowed_amount(queue, flavor, name, counts)} if borrowed else {})
                for name in resources
            ],
        }
        for flavor, resources in flavors
    ]
    kept = {"conditions": list((queue.get("status") or {}).get("conditions") or [])}
    numbers = {
        "pendingWorkloads": counts.pending,
        "reservingWorkloads": counts.reserving,
        "admittedWorkloads": counts.admitted,
    }
    listed = {"flavorsReservation": amounts, "flavorsUsage": amounts} if amounts else {}
    return {"metadata": meta(queue), "spec": spec(queue), "status": kept | numbers | listed}
