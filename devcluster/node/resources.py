"""Quantities, and what follows from requests and limits."""

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{name: Fraction(1000 ** (i + 1)) for i, name in enumerate(("k", "M", "G", "T", "P", "E"))},
    **{name: Fraction(1024 ** (i + 1)) for i, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}
QUANTITY = re.compile(r"^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]i?|))$")


def parse_quantity(text: str) -> Fraction:
    """The value of a Kubernetes quantity.

    Raises:
        ValueError: it is none.
    """
    match = QUANTITY.match(str(text))
    if not match or (match[3] or "") not in SUFFIXES:
        raise ValueError(f"quantities look like 500m, 2 or 1Gi, not {text!r}")
    number = Fraction(match[1])
    if match[2]:
        return number * Fraction(10) ** int(match[2][1:])
    return number * SUFFIXES[match[3] or ""]


def divided(quantity: str, divisor: str) -> str:
    """A resourceFieldRef's value: rounded up to whole divisors; divisor 0 means 1."""
    unit = parse_quantity(divisor or "0") or Fraction(1)
    return str(math.ceil(parse_quantity(quantity) / unit))


def qos_class(pod: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory of all containers."""
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or []), *spec["containers"]]
    amounts = [_cpu_and_memory(container) for container in containers]
    if all(not requests and not limits for requests, limits in amounts):
        return "BestEffort"
    if all(len(limits) == 2 and requests == limits for requests, limits in amounts):
        return "Guaranteed"
    return "Burstable"


def _cpu_and_memory(container: Mapping[str, Any]) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    resources = container.get("resources") or {}
    limits = _positive(resources.get("limits") or {})
    return limits | _positive(resources.get("requests") or {}), limits


def _positive(amounts: Mapping[str, str]) -> dict[str, Fraction]:
    values = ((name, parse_quantity(amounts[name])) for name in ("cpu", "memory") if name in amounts)
    return {name: value for name, value in values if value > 0}


def container_named(containers: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((container for container in containers if container["name"] == name), None)
