"""The filters that decide whether a pod fits a node, with the messages of kube-scheduler. Pure."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from devcluster.controllers.affinity import OWN, THEIRS
from devcluster.formats.objects import Object, labels, meta, spec, status
from devcluster.formats.quantity import Amounts, amounts, pod_amounts
from devcluster.formats.selectors import holds

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_HOPELESS = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


def reasons(pod: Object, node: Object, used: Amounts, closed: str = "") -> list[str]:
    """Return the messages of the first filter that rejects the pod, or an empty list if the pod fits.

    `closed` is the message of the anti-affinity filter for this node, which is the last filter.
    """
    # The filters come in the order of kube-scheduler's default plugins.
    if spec(node).get("unschedulable") and not is_tolerated(pod, {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}):
        return ["node(s) were unschedulable"]
    for taint in spec(node).get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not is_tolerated(pod, taint):
            return ["node(s) had untolerated taint(s)"]
    if not is_selected(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return _insufficient(pod, node, used) or ([closed] if closed else [])


def explain(failures: list[list[str]]) -> str:
    """Return the message of kube-scheduler for a pod that no node accepts, given the reasons of each node."""
    if not failures:
        return "no nodes available to schedule pods"
    total = len(failures)
    listed = _summarize(reason for each in failures for reason in each)
    verdicts = _summarize(_NO_VICTIMS if set(each) & {OWN, THEIRS} else _HOPELESS for each in failures)
    preemption = f"no new claims to deallocate, preemption: 0/{total} nodes are available: {verdicts}."
    return f"0/{total} nodes are available: {listed}. {preemption}"


def _summarize(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def tolerates(toleration: Object, taint: Object) -> bool:
    # A toleration without an effect or a key matches every effect or key.
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def is_tolerated(pod: Object, taint: Object) -> bool:
    return any(tolerates(entry, taint) for entry in spec(pod).get("tolerations") or [])


def is_selected(pod: Object, node: Object) -> bool:
    found = labels(node)
    if any(found.get(key) != value for key, value in (spec(pod).get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec(pod).get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    # Terms are alternatives; the requirements of one term must all hold.
    return any(_term_matches(term, node) for term in affinity.get("nodeSelectorTerms") or [])


def _term_matches(term: Object, node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    # An empty term matches no node.
    if not expressions and not fields:
        return False
    name = {"metadata.name": str(meta(node).get("name", ""))}
    return all(holds(entry, labels(node)) for entry in expressions) and all(holds(entry, name) for entry in fields)


def _insufficient(pod: Object, node: Object, used: Amounts) -> list[str]:
    room = amounts(status(node).get("allocatable"))
    zero = Decimal(0)
    missing = []
    # 110 is the default maximum of a kubelet.
    if used.get("pods", zero) + 1 > room.get("pods", Decimal(110)):
        missing.append("Too many pods")
    for name, amount in sorted(pod_amounts(pod).items()):
        if amount and used.get(name, zero) + amount > room.get(name, zero):
            missing.append(f"Insufficient {name}")
    return missing
