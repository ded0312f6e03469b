"""Computes the resource requests of a pod as the scheduler does.

Containers and sidecars (init containers that always restart) run at the same time, so their requests are added. Another
init container runs only with the sidecars that were started before it. The request of the pod is the larger one of the
sum and of the largest request while an init container runs.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import ceil, floor
from typing import Any, TypeAlias

import msgspec

from app.domain.errors import InvalidManifest
from app.domain.kubernetes.quantity import parse_quantity
from app.domain.scaling.values import ResourceAmount

Quantities: TypeAlias = Mapping[str, str | int | float | None]

_MEGA = 1_000_000
_MOST = 2**53  # the largest integer that every JSON reader represents exactly
_SIDECAR = "Always"
# As in nvidia.com/gpu and amd.com/gpu, and in alpha.kubernetes.io/nvidia-gpu of older manifests.
_GPU = "gpu"


class Resources(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, str | int | float | None] | None = None
    limits: dict[str, str | int | float | None] | None = None


class ContainerDemand(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resources: Resources | None = None
    restart_policy: str | None = None


class PodDemand(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a pod spec with its requests and its node selector."""

    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    resources: Resources | None = None
    overhead: dict[str, str | int | float | None] | None = None
    init_containers: tuple[ContainerDemand, ...] | None = None
    containers: tuple[ContainerDemand, ...] | None = None


def demand_of(pod_spec: Mapping[str, Any]) -> PodDemand:
    """Return the demand of the pod spec of an accepted pod template."""
    return msgspec.convert(pod_spec, PodDemand, strict=False)


def request_of(pod: PodDemand) -> ResourceAmount:
    """Return the resources that the pod takes from its node."""
    together = _sum(_of_container(item) for item in pod.containers or ())
    peak = sidecars = ResourceAmount()
    for item in pod.init_containers or ():
        own = _of_container(item)
        if item.restart_policy == _SIDECAR:
            sidecars += own
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, sidecars + own)
    return _as_whole(pod, _larger(together + sidecars, peak)) + _plain(pod.overhead or {})


def allocatable_of(quantities: Quantities) -> ResourceAmount:
    """Return the allocatable resources of a node, rounded down; the requests of pods are rounded up."""
    return ResourceAmount(
        cpu=_value(quantities.get("cpu"), 1000, up=False),
        memory=_value(quantities.get("memory"), 1, up=False) // _MEGA,
        gpu=_gpus(quantities),
    )


def slots_of(quantities: Quantities) -> int | None:
    """Return how many pods the node can run; None if it has no such limit."""
    return _value(quantities["pods"], 1, up=False) if quantities.get("pods") is not None else None


def _of_container(item: ContainerDemand) -> ResourceAmount:
    """Return the requests of a container.

    As in the API server, a limit is the default of a request; GPUs have limits.
    """
    if item.resources is None:
        return ResourceAmount()
    limits = item.resources.limits or {}
    return _plain({**limits, **(item.resources.requests or {})}) + ResourceAmount(gpu=_gpus(limits))


def _as_whole(pod: PodDemand, found: ResourceAmount) -> ResourceAmount:
    """Return the requests of a pod. Requests at the level of the pod replace the sums over its containers."""
    declared = (pod.resources.requests or {}) if pod.resources else {}
    whole = _plain(declared)
    return ResourceAmount(
        cpu=whole.cpu if "cpu" in declared else found.cpu,
        memory=whole.memory if "memory" in declared else found.memory,
        gpu=found.gpu,
    )


def _plain(quantities: Quantities) -> ResourceAmount:
    memory = _value(quantities.get("memory"), 1, up=True)
    return ResourceAmount(cpu=_value(quantities.get("cpu"), 1000, up=True), memory=-(-memory // _MEGA))


def _gpus(quantities: Quantities) -> int:
    return sum(_value(value, 1, up=True) for name, value in quantities.items() if name.endswith(_GPU))


def _larger(one: ResourceAmount, other: ResourceAmount) -> ResourceAmount:
    return ResourceAmount(
        cpu=max(one.cpu, other.cpu), memory=max(one.memory, other.memory), gpu=max(one.gpu, other.gpu)
    )


def _sum(amounts: Iterable[ResourceAmount]) -> ResourceAmount:
    total = ResourceAmount()
    for amount in amounts:
        total += amount
    return total


def _value(quantity: str | float | None, unit: int, *, up: bool) -> int:
    return 0 if quantity is None else _parse(str(quantity), unit, up)


@lru_cache(maxsize=4096)  # a cluster's pods share few distinct quantities
def _parse(text: str, unit: int, up: bool) -> int:  # noqa: FBT001  part of the cache's key
    try:
        amount = parse_quantity(text) * unit
    except InvalidManifest:
        return 0  # the API server refuses such a quantity
    return min(ceil(amount) if up else floor(amount), _MOST)
