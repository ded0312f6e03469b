"""Requests and limits: known names, quantities that are not negative, no request over its limit."""

from decimal import Decimal

from app.domain.decoding import JsonValue
from app.domain.errors import InvalidManifest, Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.kubernetes.quantity import parse_quantity
from app.domain.pod_template.reading import Mapping, mapping

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))
_HUGE_PAGES = "hugepages-"
_NAME_ACCEPTED = "cpu, memory, ephemeral-storage, hugepages-<size>, or an extended resource such as nvidia.com/gpu"


def check_resources(resources: JsonValue, pointer: str, problems: Problems, *, extended: bool = True) -> None:
    """Check requests and limits. Those of a pod as a whole cannot have extended resources."""
    limits = _quantities(mapping(resources).get("limits"), pointer_to(pointer, "limits"), problems, extended=extended)
    requests = _quantities(
        mapping(resources).get("requests"), pointer_to(pointer, "requests"), problems, extended=extended
    )
    named = limits | requests
    if any(name.startswith(_HUGE_PAGES) for name in named) and not named.keys() & {"cpu", "memory"}:
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


def check_amount(owner: Mapping, path: tuple[str, str], pointer: str, problems: Problems) -> None:
    """Report the quantity at this path of two steps if it is negative."""
    quantity = _quantity(mapping(owner.get(path[0])).get(path[1]))
    if quantity is not None and quantity < 0:
        problems.add(pointer_to(pointer, *path), "OutOfRange", f"{path[1]} must not be negative", "0 or more")


def _quantities(amounts: JsonValue, pointer: str, problems: Problems, *, extended: bool) -> dict[str, Decimal]:
    parsed: dict[str, Decimal] = {}
    for name, value in mapping(amounts).items():
        here = pointer_to(pointer, name)
        if wrong := _wrong_name(name, extended=extended):
            problems.add(here, "Invalid", f"the resource {shorten(name)} {wrong}", _NAME_ACCEPTED)
            continue
        quantity = _quantity(value)
        if quantity is None:
            continue
        if quantity < 0:
            problems.add(here, "OutOfRange", f"{name} must not be negative", "0 or more")
        # An extended resource counts devices.
        elif "/" in name and quantity != quantity.to_integral_value():
            problems.add(here, "Invalid", f"{name} comes in whole pieces only", "an integer")
        else:
            parsed[name] = quantity
    return parsed


def _quantity(value: JsonValue) -> Decimal | None:
    """Return the value of a quantity, or None if it is not valid, which the schema has reported."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(str(value))
    except InvalidManifest:
        return None


def _wrong_name(name: str, *, extended: bool) -> str | None:
    if name in _STANDARD or name.startswith(_HUGE_PAGES):
        return None
    if "/" not in name:
        return "is not a standard resource"
    # A resource quota has such a prefix before the names of extended resources.
    if name.startswith("requests."):
        return "does not follow the standard of extended resources"
    return names.label_key(name) if extended else "is not a resource of a pod as a whole"


def _may_be_overcommitted(name: str) -> bool:
    return name in _STANDARD
