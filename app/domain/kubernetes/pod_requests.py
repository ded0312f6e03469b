"""What a pod requests of its node, as the scheduler counts it. Pure and exact.

Containers and sidecars (init containers that always restart) run at the same time, another init container only with the
sidecars before it. Requests at the level of the pod replace the sums over its containers, and the overhead of its
RuntimeClass is added. A limit is the default of a request that is not given. At the level of the pod it is that for
huge pages, and for what no container requests.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from app.domain.kubernetes.quantity import value_of

Amounts: TypeAlias = Mapping[str, Decimal]
"""Quantities by the name of the resource."""
_ZERO: Final = Decimal(0)
HUGE_PAGES: Final = "hugepages-"
"""How the names of the resources of huge pages begin."""


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Return what the pod of this spec requests."""
    of_pod = _amounts(requests_at_pod_level(spec))
    return _sum({**_requests_of_containers(spec), **of_pod}, _amounts(spec.get("overhead")))


def requests_at_pod_level(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a pod requests at its own level, which counts instead of the sums over its containers.

    The API server also copies sums over the containers to that level, which changes no amount.
    """
    resources = spec.get("resources") or {}
    limits = resources.get("limits") or {}
    requested = _requests_of_containers(spec) if limits else {}
    defaults = {name: limit for name, limit in limits.items() if name.startswith(HUGE_PAGES) or name not in requested}
    return {**defaults, **(resources.get("requests") or {})}


def requests_of_container(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the requests that the API server gives a container. A limit is the default of a request."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _requests_of_containers(spec: Mapping[str, Any]) -> Amounts:
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(requests_of_container(container))
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
            own = {}
        peak = _larger(peak, _sum(sidecars, own))
    together = sidecars
    for container in spec.get("containers") or ():
        together = _sum(together, _amounts(requests_of_container(container)))
    return _larger(together, peak)


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, _ZERO) + other.get(name, _ZERO) for name in (*one, *other)}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, _ZERO), other.get(name, _ZERO)) for name in (*one, *other)}


def _amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {name: value_of(quantity) for name, quantity in (quantities or {}).items()}
