"""What a Workload is to its queue: its state, its order, what it requests and what it uses. Pure."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from devcluster.formats.objects import Object, condition, is_terminating, labels, meta, spec, status, uid
from devcluster.formats.quantity import Amounts, amounts, pod_amounts
from devcluster.strategies.kueue import holds_quota

JOB_UID = "kueue.x-k8s.io/job-uid"
Usage = dict[tuple[str, str], Decimal]
"""Amounts by flavor and resource."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of one pod set that are still needed, and what they request together."""

    name: str
    count: int
    pod: Object
    requests: Amounts


def has_condition(workload: Object, kind: str) -> bool:
    return (condition(workload, kind) or {}).get("status") == "True"


def is_evicted(workload: Object, reason: str) -> bool:
    """Return whether the last eviction had this reason and still holds."""
    found = condition(workload, "Evicted") or {}
    return found.get("status") == "True" and found.get("reason") == reason


def is_orphan(workload: Object) -> bool:
    """Return whether a Workload names its job, and no owner, by which Kueue knows that the job is gone."""
    return JOB_UID in labels(workload) and not meta(workload).get("ownerReferences")


def cluster_queue_of(workload: Object) -> str:
    """Return the ClusterQueue whose quota a Workload holds."""
    return str(workload["status"]["admission"]["clusterQueue"])


def is_active(workload: Object) -> bool:
    return bool(spec(workload).get("active", True))


def is_pending(workload: Object) -> bool:
    """Return whether a Workload waits for quota. Its owner holds it back with Requeued=False."""
    if holds_quota(workload) or has_condition(workload, "Finished") or is_terminating(workload):
        return False
    return is_active(workload) and (condition(workload, "Requeued") or {}).get("status") != "False"


def is_reserving(workload: Object) -> bool:
    """Return whether the quota of a Workload is in use. That of a deactivated one is free at once."""
    return holds_quota(workload) and is_active(workload) and not has_condition(workload, "Finished")


def priority_of(workload: Object) -> int:
    return int(spec(workload).get("priority") or 0)


def queue_order(workload: Object) -> tuple[int, str, str]:
    """Higher priority first, then first come, first served. The time has whole seconds, so the uid decides the rest."""
    return -priority_of(workload), str(meta(workload).get("creationTimestamp", "")), uid(workload)


def pod_sets(workload: Object) -> list[PodSet]:
    needed = _count_needed(workload)
    found = []
    for item in spec(workload)["podSets"]:
        pod = {"spec": _with_requests(spec(item["template"]))}
        count = needed[item["name"]]
        requests = {name: amount * count for name, amount in pod_amounts(pod).items()}
        found.append(PodSet(item["name"], count, pod, requests))
    return found


def request_of(workload: Object) -> Hashable:
    """Return a value that changes with what a Workload requests."""
    return meta(workload)["generation"], frozenset(_count_needed(workload).items())


def _count_needed(workload: Object) -> dict[str, int]:
    """Return how many pods of each pod set are still needed."""
    reclaimable = {entry["name"]: entry["count"] for entry in status(workload).get("reclaimablePods") or []}
    return {
        item["name"]: max(item["count"] - reclaimable.get(item["name"], 0), 0) for item in spec(workload)["podSets"]
    }


def _with_requests(pod: Object) -> Object:
    """Return a pod spec whose containers request their limits if they request nothing else.

    The API server sets this default in pods, and Kueue in Workloads.
    """
    changed = {}
    for group in ("containers", "initContainers"):
        changed[group] = [
            container | {"resources": {"requests": {**(given.get("limits") or {}), **(given.get("requests") or {})}}}
            for container in pod.get(group) or []
            for given in (container.get("resources") or {},)
        ]
    return pod | changed


def usage(workload: Object) -> Usage:
    """Return what an admitted Workload uses: its assignments without the pods that it does not need any more."""
    needed = _count_needed(workload)
    found: Usage = {}
    for assignment in (status(workload).get("admission") or {}).get("podSetAssignments") or []:
        count = assignment.get("count") or 1
        share = Decimal(min(count, needed.get(assignment["name"], count))) / count
        used = amounts(assignment.get("resourceUsage"))
        for resource, flavor in (assignment.get("flavors") or {}).items():
            key = (flavor, resource)
            found[key] = found.get(key, Decimal(0)) + used.get(resource, Decimal(0)) * share
    return found


def total(usages: Iterable[Usage]) -> Usage:
    found: Usage = {}
    for each in usages:
        for key, amount in each.items():
            found[key] = found.get(key, Decimal(0)) + amount
    return found


def without(whole: Usage, part: Usage) -> Usage:
    return {key: amount - part.get(key, Decimal(0)) for key, amount in whole.items()}
