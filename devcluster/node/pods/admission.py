"""The kubelet's admission check of a pod that was bound to this node. Pure."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from devcluster.quantity import Amounts, add, charged_amounts, parse


def rejection(
    pod: Mapping[str, Any], others: Iterable[Mapping[str, Any]], capacity: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return reason and message of an OutOf… failure, or None if the pod fits beside the others."""
    used: Amounts = {}
    for other in others:
        used = add(used, charged_amounts(other))
    wanted = charged_amounts(pod)
    # As a kubelet, check the number of pods first.
    for name in sorted(wanted, key=lambda name: (name != "pods", name)):
        amount, taken, limit = wanted[name], used.get(name, Decimal(0)), parse(capacity.get(name, "0"))
        if amount > 0 and taken + amount > limit:
            shown = [_shown(name, value) for value in (amount, taken, limit)]
            words = "requested: {}, used: {}, capacity: {}".format(*shown)
            return f"OutOf{name}", f"Pod was rejected: Node didn't have enough resource: {name}, {words}"
    return None


def _shown(name: str, amount: Decimal) -> int:
    """Return the number that the kubelet prints: thousandths for CPU, whole units otherwise."""
    return int(amount * 1000) if name == "cpu" else int(amount)
