"""The kubelet's own check of a pod that was bound to it: does it still fit? Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from devcluster.node.resources import parse_quantity

Amounts = Mapping[str, Fraction]


def rejection(
    pod: Mapping[str, Any], others: Iterable[Mapping[str, Any]], capacity: Mapping[str, str]
) -> tuple[str, str] | None:
    """Reason and message of an OutOf… failure, or None when the pod fits beside the others."""
    wanted = requests_of(pod)
    used: Counter[str] = Counter()
    for other in others:
        used.update(requests_of(other))
    for name, amount in wanted.items():
        limit = parse_quantity(capacity.get(name, "0"))
        if amount > 0 and used[name] + amount > limit:
            shown = [_shown(name, value) for value in (amount, Fraction(used[name]), limit)]
            words = "requested: {}, used: {}, capacity: {}".format(*shown)
            return f"OutOf{name}", f"Pod was rejected: Node didn't have enough resource: {name}, {words}"
    return None


def requests_of(pod: Mapping[str, Any]) -> dict[str, Fraction]:
    """Containers and sidecars together, or the largest init container with the sidecars before it; and one pod."""
    running: Counter[str] = Counter()
    peak: dict[str, Fraction] = {}
    for container in pod["spec"].get("initContainers") or []:
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            running.update(own)
            own = {}
        for name in {*own, *running}:
            peak[name] = max(peak.get(name, Fraction(0)), Fraction(running[name]) + own.get(name, 0))
    for container in pod["spec"]["containers"]:
        running.update(_requests(container))
    names = {*running, *peak}
    return {"pods": Fraction(1)} | {n: max(Fraction(running[n]), peak.get(n, Fraction(0))) for n in sorted(names)}


def _requests(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    declared = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(amount) for name, amount in declared.items()}


def _shown(name: str, amount: Fraction) -> int:
    return int(amount * 1000) if name == "cpu" else int(amount)
