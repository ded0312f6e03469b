"""The choice of the Workloads that give quota back for one of a higher priority, in one ClusterQueue. Pure."""

from devcluster.controllers.kueue.assignment import Quota
from devcluster.controllers.kueue.workloads import JOB_UID, Usage, has_condition, priority_of, total, usage, without
from devcluster.formats.objects import Object, condition, labels, uid


def victims(preemptor: Object, wanted: Usage, reserving: list[Object], quota: Quota) -> list[Object]:
    """Return as few Workloads as Kueue would, or none if all of a lower priority do not free enough."""
    lower = [
        workload
        for workload in reserving
        if priority_of(workload) < priority_of(preemptor) and usage(workload).keys() & wanted.keys()
    ]
    chosen: list[Object] = []
    freed: Usage = {}
    for workload in sorted(lower, key=_youngest_first):
        chosen.append(workload)
        freed = total((freed, usage(workload)))
        if quota.fits(wanted, freed):
            break
    else:
        return []
    needed = [chosen.pop()]
    # The first ones may be superfluous after a large one.
    for workload in reversed(chosen):
        rest = without(freed, usage(workload))
        if quota.fits(wanted, rest):
            freed = rest
        else:
            needed.append(workload)
    return needed


def _youngest_first(workload: Object) -> tuple[bool, int, list[int], str]:
    """Order candidates: those that are evicted already, then lower priorities, then those that were admitted last."""
    reserved = str((condition(workload, "QuotaReserved") or {}).get("lastTransitionTime", ""))
    # A later time comes first.
    later = [-ord(letter) for letter in reserved]
    return not has_condition(workload, "Evicted"), priority_of(workload), later, uid(workload)


def message(preemptor: Object, queue: str) -> str:
    job = labels(preemptor).get(JOB_UID) or "UNKNOWN"
    return (
        f"Preempted to accommodate a workload (UID: {uid(preemptor)}, JobUID: {job}) due to prioritization in the "
        f"ClusterQueue; preemptor path: /{queue}; preemptee path: /{queue}"
    )
