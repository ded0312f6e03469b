"""What a pod requests of its node, as the scheduler counts it. Pure and exact.

Containers and sidecars (init containers that always restart) run at the same time, another init container only with the
sidecars before it. Requests at the level of the pod replace the sums over its containers, and the overhead of its
RuntimeClass is added.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from app.domain.kubernetes.quantity import value_of

Amounts: TypeAlias = Mapping[str, Decimal]
"""Quantities by the name of the resource."""
_ZERO: Final = Decimal(0)


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Return what the pod of this spec requests."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _requests_of(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
            own = {}
        peak = _larger(peak, _sum(sidecars, own))
    together = sidecars
    for container in spec.get("containers") or ():
        together = _sum(together, _requests_of(container))
    of_pod = _amounts((spec.get("resources") or {}).get("requests"))
    return _sum({**_larger(together, peak), **of_pod}, _amounts(spec.get("overhead")))


def _requests_of(container: Mapping[str, Any]) -> Amounts:
    """Return the requests of a container. A limit is the default of a request."""
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, _ZERO) + other.get(name, _ZERO) for name in (*one, *other)}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, _ZERO), other.get(name, _ZERO)) for name in (*one, *other)}


def _amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {name: value_of(quantity) for name, quantity in (quantities or {}).items()}
