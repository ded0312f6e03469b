"""Requests and limits: known names, quantities that are not negative, no request over its limit."""

from collections import defaultdict
from decimal import Decimal

from app.domain.decoding import JsonValue
from app.domain.errors import InvalidManifest, Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.kubernetes.pod_requests import HUGE_PAGES
from app.domain.kubernetes.quantity import format_quantity, parse_quantity
from app.domain.pod_template.reading import Mapping, items, mapping

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))
_OF_POD = frozenset(("cpu", "memory"))
_MOST_DEVICES = 2**63 - 1
_NAME_ACCEPTED = "cpu, memory, ephemeral-storage, hugepages-<size>, or an extended resource such as nvidia.com/gpu"


def check_resources(resources: JsonValue, pointer: str, problems: Problems, *, extended: bool = True) -> None:
    """Check requests and limits. Those of a pod as a whole cannot have extended resources."""
    limits = check_amounts(mapping(resources).get("limits"), pointer_to(pointer, "limits"), problems, extended=extended)
    requests = check_amounts(
        mapping(resources).get("requests"), pointer_to(pointer, "requests"), problems, extended=extended
    )
    named = limits | requests
    if any(name.startswith(HUGE_PAGES) for name in named) and not named.keys() & {"cpu", "memory"}:
        problems.add(pointer, "Required", "huge pages also need cpu or memory", "a limit of cpu or memory")
    for name, requested in requests.items():
        here = pointer_to(pointer, "requests", name)
        limit = limits.get(name)
        if _may_be_overcommitted(name):
            if limit is not None and requested > limit:
                problems.add(here, "OutOfRange", f"the request of {name} is over its limit", "at most the limit")
        # The API server refuses to overcommit extended resources and huge pages.
        elif limit is None:
            here = pointer_to(pointer, "limits", name)
            problems.add(here, "Required", f"{name} cannot be shared: its limit must be set", "what is requested")
        elif requested != limit:
            problems.add(here, "Invalid", f"{name} cannot be shared: request and limit must be equal", "the limit")


def check_total(pod: Mapping, pointer: str, problems: Problems) -> None:
    """Check the resources of the pod as a whole against those of its containers, which share them."""
    whole, here = mapping(pod.get("resources")), pointer_to(pointer, "resources")
    if whole.get("claims") is not None:
        detail = "only a container uses the resource claims of its pod"
        problems.add(pointer_to(here, "claims"), "NotSupported", detail, "leave it out")
    limits, requests = mapping(whole.get("limits")), mapping(whole.get("requests"))
    if not limits and not requests:
        return
    for name, total in _sum_requests(pod).items():
        most = amount_of(requests.get(name, limits.get(name)))
        if most is not None and total > most:
            field = "requests" if name in requests else "limits"
            detail = f"the containers of the pod request more {name}, {format_quantity(total)} in all"
            problems.add(pointer_to(here, field, name), "OutOfRange", detail, f"at least {format_quantity(total)}")
    for field in ("initContainers", "containers"):
        for container, at in items(pod, field, pointer):
            for name, limit in mapping(mapping(container.get("resources")).get("limits")).items():
                own, most = amount_of(limit), amount_of(limits.get(name))
                if own is not None and most is not None and own > most:
                    detail = f"the limit of {name} is over that of the pod"
                    problems.add(
                        pointer_to(at, "resources", "limits", name),
                        "OutOfRange",
                        detail,
                        f"at most {format_quantity(most)}",
                    )


def _sum_requests(pod: Mapping) -> dict[str, Decimal]:
    """Return the most that the containers request at a time. A request that is not given is the limit."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for container, _ in items(pod, "containers", ""):
        for name, amount in _requests_of(container).items():
            totals[name] += amount
    # Init containers run one after another, before the others, except those that run on.
    beside: dict[str, Decimal] = defaultdict(Decimal)
    peaks: dict[str, Decimal] = defaultdict(Decimal)
    for container, _ in items(pod, "initContainers", ""):
        runs_on = container.get("restartPolicy") == "Always"
        for name, amount in _requests_of(container).items():
            if runs_on:
                totals[name] += amount
                beside[name] += amount
            else:
                peaks[name] = max(peaks[name], amount + beside[name])
    return {name: max(totals[name], peaks[name]) for name in totals.keys() | peaks.keys()}


def _requests_of(container: Mapping) -> dict[str, Decimal]:
    resources = mapping(container.get("resources"))
    declared = mapping(resources.get("limits")) | mapping(resources.get("requests"))
    return {name: amount for name, value in declared.items() if (amount := amount_of(value)) is not None}


def check_amount(owner: Mapping, path: tuple[str, str], pointer: str, problems: Problems) -> None:
    """Report the quantity at this path of two steps if it is negative."""
    quantity = amount_of(mapping(owner.get(path[0])).get(path[1]))
    if quantity is not None and quantity < 0:
        problems.add(pointer_to(pointer, *path), "OutOfRange", f"{path[1]} must not be negative", "0 or more")


def check_amounts(amounts: JsonValue, pointer: str, problems: Problems, *, extended: bool = True) -> dict[str, Decimal]:
    """Check the amounts of resources, and return those that are valid."""
    parsed: dict[str, Decimal] = {}
    for name, value in mapping(amounts).items():
        here = pointer_to(pointer, name)
        if wrong := _wrong_name(name, extended=extended):
            problems.add(here, "Invalid", f"the resource {shorten(name)} {wrong}", _NAME_ACCEPTED)
            continue
        quantity = amount_of(value)
        if quantity is None:
            continue
        if quantity < 0:
            problems.add(here, "OutOfRange", f"{name} must not be negative", "0 or more")
        # An extended resource counts devices.
        elif not _is_native(name) and quantity != quantity.to_integral_value():
            problems.add(here, "Invalid", f"{name} comes in whole pieces only", "an integer")
        elif name.startswith(HUGE_PAGES) and not _is_whole_pages(quantity, name):
            accepted = f"a multiple of {shorten(name.removeprefix(HUGE_PAGES))}"
            problems.add(here, "Invalid", f"{shorten(name)} comes in whole pages only", accepted)
        elif not _is_native(name) and quantity > _MOST_DEVICES:
            problems.add(here, "OutOfRange", f"there are never so many devices of {name}", f"at most {_MOST_DEVICES}")
        else:
            parsed[name] = quantity
    return parsed


def amount_of(value: JsonValue) -> Decimal | None:
    """Return the value of a quantity, or None if there is none or it is not valid, which the schema has reported."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(str(value))
    except InvalidManifest:
        return None


def _wrong_name(name: str, *, extended: bool) -> str | None:
    if name in (_STANDARD if extended else _OF_POD) or name.startswith(HUGE_PAGES):
        return None
    if "/" not in name:
        return "is not a standard resource"
    # A resource quota has such a prefix before the names of extended resources.
    if name.startswith("requests."):
        return "does not follow the standard of extended resources"
    return names.label_key(name) if extended else "is not a resource of a pod as a whole"


def _is_whole_pages(quantity: Decimal, name: str) -> bool:
    size = amount_of(name.removeprefix(HUGE_PAGES))
    return size is not None and size > 0 and quantity % size == 0


def _is_native(name: str) -> bool:
    """Return whether Kubernetes defines the resource. All others count devices."""
    return "/" not in name or "kubernetes.io/" in name


def _may_be_overcommitted(name: str) -> bool:
    return _is_native(name) and not name.startswith(HUGE_PAGES)
