"""The choice of a flavor for each resource of a Workload, with Kueue's messages for what does not fit. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum

from devcluster.controllers.fit import is_selected, tolerates
from devcluster.controllers.kueue.cohorts import QuotaNode
from devcluster.controllers.kueue.workloads import PodSet, Usage
from devcluster.formats.objects import Object, spec
from devcluster.formats.quantity import Amounts, render_canonical

_ZERO = Decimal(0)


class Fit(IntEnum):
    """Whether a request fits, the best answer last."""

    NONE = 0
    AFTER_PREEMPTION = 1
    NOW = 2


@dataclass(slots=True)
class Assignment:
    """The flavors of a Workload. `problem` is empty if all pod sets fit."""

    fit: Fit = Fit.NOW
    problem: str = ""
    pod_sets: list[Object] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)


@dataclass(slots=True)
class Quota:
    """The resource groups of a ClusterQueue, the specs of its flavors by name, and what it has and uses."""

    groups: list[Object]
    flavors: Mapping[str, Object]
    node: QuotaNode
    can_preempt: bool

    def fits(self, wanted: Usage, freed: Usage) -> bool:
        self.node.give_back(freed)
        fits = all(amount <= self.node.available(key) for key, amount in wanted.items())
        self.node.use(freed)
        return fits


def assign(pod_sets: list[PodSet], quota: Quota) -> Assignment:
    """Choose flavors for the pod sets in their order, each beside those before it."""
    found = Assignment()
    problems = []
    for pod_set in pod_sets:
        fit, reasons = _assign_pod_set(found, pod_set, quota)
        found.fit = min(found.fit, fit)
        if fit is not Fit.NOW:
            problems.append(f"couldn't assign flavors to pod set {pod_set.name}: {', '.join(sorted(reasons))}")
        if fit is Fit.NONE:
            break
    found.problem = "; ".join(problems)
    return found


def _assign_pod_set(found: Assignment, pod_set: PodSet, quota: Quota) -> tuple[Fit, list[str]]:
    covered = {name for group in quota.groups for name in group.get("coveredResources") or []}
    requests = dict(pod_set.requests)
    if "pods" in covered:
        requests["pods"] = Decimal(pod_set.count)
    missing = sorted(requests.keys() - covered)
    if missing:
        return Fit.NONE, [f"resource {name} unavailable in ClusterQueue" for name in missing]
    flavors: dict[str, str] = {}
    worst, reasons = Fit.NOW, []
    for group in quota.groups:
        wanted = {name: requests[name] for name in group["coveredResources"] if name in requests}
        if not wanted:
            continue
        fit, flavor, why = _choose(group, pod_set, wanted, quota, found.usage)
        worst = min(worst, fit)
        reasons += why
        flavors |= dict.fromkeys(wanted, flavor)
    if worst is not Fit.NONE:
        for name, flavor in flavors.items():
            found.usage[flavor, name] = found.usage.get((flavor, name), _ZERO) + requests[name]
        found.pod_sets.append(_render_pod(pod_set, flavors, requests))
    return worst, reasons


def _render_pod(pod_set: PodSet, flavors: dict[str, str], requests: Amounts) -> Object:
    found: Object = {"name": pod_set.name, "count": pod_set.count}
    if flavors:
        found["flavors"] = flavors
        found["resourceUsage"] = {name: render_canonical(name, requests[name]) for name in flavors}
    return found


def _choose(
    group: Object, pod_set: PodSet, wanted: Amounts, quota: Quota, assumed: Usage
) -> tuple[Fit, str, list[str]]:
    """Return the first flavor that fits, otherwise the first that preemption may free, and why others do not fit."""
    best, chosen = Fit.NONE, ""
    reasons: list[str] = []
    keys = {key for flavor in group["flavors"] for key in quota.flavors[flavor["name"]].get("nodeLabels") or {}}
    for flavor in group["flavors"]:
        name = flavor["name"]
        unsuitable = _unsuitable(pod_set.pod, name, quota.flavors[name], keys)
        if unsuitable:
            reasons.append(unsuitable)
            continue
        fit, why = _measure(name, wanted, quota, assumed)
        if fit is Fit.NOW:
            return fit, name, []
        reasons += why
        if fit > best:
            best, chosen = fit, name
    return best, chosen, reasons


def _measure(flavor: str, wanted: Amounts, quota: Quota, assumed: Usage) -> tuple[Fit, list[str]]:
    worst = Fit.NOW
    reasons = []
    for name, amount in wanted.items():
        key = (flavor, name)
        before, limit = assumed.get(key, _ZERO), quota.node.maximum(key)
        lack = before + amount - quota.node.available(key)
        if before + amount > limit:
            worst = Fit.NONE
            reasons.append(
                f"insufficient quota for {name} in flavor {flavor}, previously considered podsets requests "
                f"({render_canonical(name, before)}) + current podset request ({render_canonical(name, amount)}) > "
                f"maximum capacity ({render_canonical(name, limit)})"
            )
        elif lack > 0:
            # Nothing is preempted for what would have to be borrowed.
            preempts = quota.can_preempt and before + amount <= quota.node.nominal(key)
            worst = min(worst, Fit.AFTER_PREEMPTION if preempts else Fit.NONE)
            needed = render_canonical(name, lack)
            reasons.append(f"insufficient unused quota for {name} in flavor {flavor}, {needed} more needed")
    return worst, reasons


def _unsuitable(pod: Object, name: str, flavor: Object, keys: set[str]) -> str:
    """Return why the nodes of a flavor do not suit a pod, or an empty string.

    Only labels that some flavor of the group has are compared: the others are the scheduler's concern.
    """
    tolerations = [*(spec(pod).get("tolerations") or []), *(flavor.get("tolerations") or [])]
    for taint in flavor.get("nodeTaints") or []:
        if taint.get("effect") == "PreferNoSchedule" or any(tolerates(entry, taint) for entry in tolerations):
            continue
        return f"untolerated taint {{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}} in flavor {name}"
    node = {"metadata": {"labels": flavor.get("nodeLabels") or {}}}
    return "" if is_selected(_restrict(pod, keys), node) else f"flavor {name} doesn't match node affinity"


def _restrict(pod: Object, keys: set[str]) -> Object:
    """Return a pod that selects its node only by the labels with these keys."""
    found = spec(pod)
    selector = {key: value for key, value in (found.get("nodeSelector") or {}).items() if key in keys}
    required = ((found.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = [
        [entry for entry in term.get("matchExpressions") or [] if entry["key"] in keys]
        for term in required.get("nodeSelectorTerms") or []
    ]
    # A term without a comparable requirement accepts every flavor.
    if not terms or not all(terms):
        return {"spec": {"nodeSelector": selector}}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": term} for term in terms]
            }
        }
    }
    return {"spec": {"nodeSelector": selector, "affinity": affinity}}
