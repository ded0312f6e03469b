"""Does a pod fit a node? The filters of kube-scheduler that matter here, with its own words."""

from collections import Counter
from decimal import Decimal

from app.devcluster.objects import Object, labels, meta, spec, status
from app.devcluster.quantity import Amounts, amounts, pod_amounts

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_NO_PREEMPTION = (
    "no new claims to deallocate, preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
)


def reasons(pod: Object, node: Object, used: Amounts) -> list[str]:
    """Return why the pod cannot run there, the first failing filter only; empty when it fits."""
    if spec(node).get("unschedulable") and not _tolerated(pod, {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}):
        return ["node(s) were unschedulable"]
    for taint in spec(node).get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _tolerated(pod, taint):
            return ["node(s) had untolerated taint(s)"]
    if not _selected(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return _insufficient(pod, node, used)


def explain(failures: list[list[str]]) -> str:
    """Sum up per-node reasons into the scheduler's sentence."""
    if not failures:
        return "no nodes available to schedule pods"
    total = len(failures)
    counts = Counter(reason for each in failures for reason in each)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{total} nodes are available: {listed}. {_NO_PREEMPTION.format(total)}"


def tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _tolerated(pod: Object, taint: Object) -> bool:
    return any(tolerates(entry, taint) for entry in spec(pod).get("tolerations") or [])


def _selected(pod: Object, node: Object) -> bool:
    found = labels(node)
    if any(found.get(key) != value for key, value in (spec(pod).get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec(pod).get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    return any(_term_matches(term, node) for term in affinity.get("nodeSelectorTerms") or [])


def _term_matches(term: Object, node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    name = {"metadata.name": str(meta(node).get("name", ""))}
    return all(_holds(entry, labels(node)) for entry in expressions) and all(_holds(entry, name) for entry in fields)


def _holds(expression: Object, found: dict[str, str]) -> bool:
    value = found.get(expression["key"])
    wanted = expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.isdigit() and int(value) > int(wanted[0])
        case "Lt":
            return value is not None and value.isdigit() and int(value) < int(wanted[0])
        case _:
            return False


def _insufficient(pod: Object, node: Object, used: Amounts) -> list[str]:
    room = amounts(status(node).get("allocatable"))
    zero = Decimal(0)
    missing = []
    if used.get("pods", zero) + 1 > room.get("pods", Decimal(110)):
        missing.append("Too many pods")
    for name, amount in sorted(pod_amounts(pod).items()):
        if amount and used.get(name, zero) + amount > room.get(name, zero):
            missing.append(f"Insufficient {name}")
    return missing
