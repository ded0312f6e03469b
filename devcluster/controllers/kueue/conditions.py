"""The changes that Kueue makes to a Workload by its decisions. Pure but for the current time."""

from devcluster.controllers.kueue.assignment import Assignment
from devcluster.controllers.kueue.workloads import has_condition, pod_sets
from devcluster.formats.objects import Object, condition, set_condition
from devcluster.formats.quantity import render_canonical


def report_inadmissible(workload: Object, message: str) -> Object:
    """Report that the Workload has no queue that works."""
    set_condition(workload, "QuotaReserved", "False", reason="Inadmissible", message=message)
    return workload


def report_pending(workload: Object, message: str) -> Object:
    """Report why the queue does not admit the Workload now."""
    set_condition(workload, "QuotaReserved", "False", reason="Pending", message=message)
    workload["status"]["resourceRequests"] = [
        {"name": pod_set.name, "resources": {name: render_canonical(name, pod_set.requests[name])
                                             for name in sorted(pod_set.requests)}}
        for pod_set in pod_sets(workload)
    ]  # fmt: skip
    return workload


def admit(workload: Object, queue: str, assignment: Assignment) -> Object:
    found = workload.setdefault("status", {})
    found.pop("resourceRequests", None)
    found["admission"] = {"clusterQueue": queue, "podSetAssignments": assignment.pod_sets}
    message = f"Quota reserved in ClusterQueue {queue}"
    set_condition(workload, "QuotaReserved", "True", reason="QuotaReserved", message=message)
    set_condition(workload, "Admitted", "True", reason="Admitted", message="The workload is admitted")
    for kind in ("Evicted", "Preempted"):
        if has_condition(workload, kind):
            before = (condition(workload, kind) or {}).get("message", "")
            set_condition(workload, kind, "False", reason="QuotaReserved", message=f"Previously: {before}")
    return workload


def evict(workload: Object, reason: str, message: str) -> Object:
    """Request that the owner stops its pods. The admission stays until the owner removes it."""
    set_condition(workload, "Evicted", "True", reason=reason, message=message)
    return workload


def requeue(workload: Object, reason: str, message: str) -> Object:
    """Queue a Workload again that its owner has held back for the reason of its eviction."""
    set_condition(workload, "Requeued", "True", reason=reason, message=message)
    return workload


def finish_orphan(workload: Object) -> Object:
    """Report the end of a Workload whose job is gone."""
    message = "The workload's owner no longer exists"
    set_condition(workload, "Finished", "True", reason="OwnerNotFound", message=message)
    return workload


def preempt(workload: Object, message: str) -> Object:
    set_condition(workload, "Preempted", "True", reason="InClusterQueue", message=message)
    return evict(workload, "Preempted", message)
