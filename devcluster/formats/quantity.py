"""Kubernetes quantities, such as 500m and 2Gi, and the resources of pods. Pure."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from devcluster.formats.objects import Object, spec

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# Decimal suffixes are powers of 1000, binary suffixes are powers of 1024.
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}

Amounts = dict[str, Decimal]


def parse(text: str | float) -> Decimal:
    """Return the exact value of a quantity.

    Raises:
        ValueError: the text is not a quantity.
    """
    text = str(text)
    # Longer suffixes come first, since "M" is a suffix of its own.
    for size in (2, 1):
        factor = _SUFFIXES.get(text[-size:]) if len(text) > size else None
        if factor is not None:
            return _number(text[:-size]) * factor
    return _number(text)


def _number(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a quantity")
    return Decimal(text)


def render(value: Decimal) -> str:
    """Format a quantity: a whole number as it is, a fraction in thousandths."""
    if value == value.to_integral_value():
        return str(int(value))
    return f"{int((value * 1000).to_integral_value())}m"


def render_canonical(resource: str, value: Decimal) -> str:
    """Format a quantity of a resource as Go does: with the largest suffix that leaves a whole number.

    Bytes have binary suffixes, all else has decimal ones.
    """
    binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    base, suffixes = (1024, "KMGTPE") if binary else (1000, "kMGTPE")
    if value != value.to_integral_value():
        return render(value)
    whole, suffix = int(value), ""
    for letter in suffixes:
        if not whole or whole % base:
            break
        whole, suffix = whole // base, f"{letter}i" if binary else letter
    return f"{whole}{suffix}"


def amounts(quantities: Mapping[str, str | float] | None) -> Amounts:
    return {name: parse(text) for name, text in (quantities or {}).items()}


def add(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, Decimal(0)) + right.get(name, Decimal(0)) for name in left.keys() | right.keys()}


def subtract(left: Amounts, right: Amounts) -> Amounts:
    return {name: amount - right.get(name, Decimal(0)) for name, amount in left.items()}


def _largest(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, Decimal(0)), right.get(name, Decimal(0))) for name in left.keys() | right.keys()}


def charged_amounts(pod: Mapping[str, Any]) -> Amounts:
    """Return what a pod takes of its node: its requests, and one of the pods that the node accepts."""
    return add(pod_amounts(pod), {"pods": Decimal(1)})


def qos_class(pod: Mapping[str, Any]) -> str:
    """Return Guaranteed, Burstable or BestEffort, by the CPU and memory of the pod as a whole or of all containers."""
    containers = [*(spec(pod).get("initContainers") or []), *(spec(pod).get("containers") or [])]
    owners = [spec(pod)] if spec(pod).get("resources") else containers
    declared = [_cpu_and_memory(owner.get("resources") or {}) for owner in owners]
    if all(not requests and not limits for requests, limits in declared):
        return "BestEffort"
    if all(len(limits) == 2 and requests == limits for requests, limits in declared):
        return "Guaranteed"
    return "Burstable"


def _cpu_and_memory(resources: Mapping[str, Any]) -> tuple[Amounts, Amounts]:
    """Return requests and limits without zeros. A request defaults to its limit."""
    limits = _positive(amounts(resources.get("limits")))
    return limits | _positive(amounts(resources.get("requests"))), limits


def _positive(found: Amounts) -> Amounts:
    return {name: found[name] for name in ("cpu", "memory") if found.get(name, Decimal(0)) > 0}


def _of(containers: Iterable[Object], kind: str) -> Iterable[Amounts]:
    return (amounts((container.get("resources") or {}).get(kind)) for container in containers)


def pod_amounts(pod: Mapping[str, Any], kind: str = "requests") -> Amounts:
    """Return what the scheduler charges for a pod.

    That is the sum over containers and sidecars, or the largest init container with the sidecars before it, whichever
    is more. What the pod as a whole has replaces it, and the overhead is added.
    """
    total: Amounts = {}
    for requested in _of(spec(pod).get("containers") or [], kind):
        total = add(total, requested)
    sidecars: Amounts = {}
    steps: Amounts = {}
    for container in spec(pod).get("initContainers") or []:
        requested = amounts((container.get("resources") or {}).get(kind))
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, requested)
            steps = _largest(steps, sidecars)
        else:
            steps = _largest(steps, add(sidecars, requested))
    of_pod = amounts((spec(pod).get("resources") or {}).get(kind))
    return add(_largest(add(total, sidecars), steps) | of_pod, amounts(spec(pod).get("overhead")))
