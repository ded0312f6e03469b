"""The kubelet's admission check of a pod that was bound to this node. Pure."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from devcluster.formats.quantity import Amounts, add, charged_amounts, parse, subtract


class Ledger:
    """The amounts of the pods of a node, and their sum, so that an admission does not add up all pods again."""

    def __init__(self) -> None:
        self._charged: dict[str, Amounts] = {}
        self._sum: Amounts = {}

    def charge(self, pod: Mapping[str, Any]) -> None:
        """Add a pod that is not in the ledger."""
        amounts = self._charged[pod["metadata"]["uid"]] = charged_amounts(pod)
        self._sum = add(self._sum, amounts)

    def free(self, uid: str) -> None:
        """Take out the pod with this uid, if the ledger has it."""
        self._sum = subtract(self._sum, self._charged.pop(uid, {}))

    def without(self, uid: str) -> Amounts:
        """Return the sum of all pods but this one."""
        return subtract(self._sum, self._charged.get(uid, {}))


def sum_of(pods: Iterable[Mapping[str, Any]]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        total = add(total, charged_amounts(pod))
    return total


def rejection(pod: Mapping[str, Any], used: Amounts, capacity: Mapping[str, str]) -> tuple[str, str] | None:
    """Return reason and message of an OutOf… failure, or None if the pod fits beside what others use."""
    wanted = charged_amounts(pod)
    # As a kubelet, check the number of pods first.
    for name in sorted(wanted, key=lambda name: (name != "pods", name)):
        amount, taken, limit = wanted[name], used.get(name, Decimal(0)), parse(capacity.get(name, "0"))
        if amount > 0 and taken + amount > limit:
            shown = [_as_printed(name, value) for value in (amount, taken, limit)]
            words = "requested: {}, used: {}, capacity: {}".format(*shown)
            return f"OutOf{name}", f"Pod was rejected: Node didn't have enough resource: {name}, {words}"
    return None


def _as_printed(name: str, amount: Decimal) -> int:
    """Return the number that the kubelet prints: thousandths for CPU, whole units otherwise."""
    return int(amount * 1000) if name == "cpu" else int(amount)
