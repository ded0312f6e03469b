"""Reads values of unknown type, and checks names that a list has once.

A value of the wrong type reads as absent, because the schema reports it.
"""

from collections.abc import Collection, Iterator

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import names

Mapping = dict[str, JsonValue]
NAME_ACCEPTED = "lower case letters, digits and '-', at most 63 characters"


def mapping(value: JsonValue) -> Mapping:
    return value if isinstance(value, dict) else {}


def items(owner: Mapping, name: str, pointer: str) -> Iterator[tuple[Mapping, str]]:
    """Yield each object of the list `name`, with its pointer. A null is an object without fields."""
    values = owner.get(name)
    if not isinstance(values, list):
        return
    for index, value in enumerate(values):
        if value is None or isinstance(value, dict):
            yield value or {}, pointer_to(pointer, name, index)


def texts(owner: Mapping, name: str, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield each text of the list `name`, with its pointer. A null is an empty text."""
    values = owner.get(name)
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if value is None or isinstance(value, str):
            yield value or "", pointer_to(pointer, name, index)


def text(owner: Mapping, name: str) -> str:
    value = owner.get(name)
    return value if isinstance(value, str) else ""


def present_fields(owner: Mapping, fields: tuple[str, ...]) -> list[str]:
    """Return which of these fields are set."""
    return [name for name in fields if owner.get(name) is not None]


def check_distinct(owner: Mapping, field: str, key: str, pointer: str, problems: Problems) -> None:
    """Report each object of the list `field` whose `key` an object before it has."""
    seen: set[str] = set()
    for item, here in items(owner, field, pointer):
        value = text(item, key)
        if value and value in seen:
            detail = f"another entry has the {key} {shorten(value)}"
            problems.add(pointer_to(here, key), "Duplicate", detail, f"a {key} of its own for each")
        seen.add(value)


def check_name(owner: Mapping, here: str, seen: Collection[str], problems: Problems, *, what: str) -> None:
    """Check the name of a container or volume. `seen` has the names of those before it."""
    name = text(owner, "name")
    pointer = pointer_to(here, "name")
    if not name:
        # The schema reports a name that is missing or of another type.
        if owner.get("name") == "":
            problems.add(pointer, "Required", f"a {what} must have a name", NAME_ACCEPTED)
        return
    if wrong := names.dns_label(name):
        problems.add(pointer, "Invalid", f"the {what} name {shorten(name)}: {wrong}", NAME_ACCEPTED)
    elif name in seen:
        problems.add(pointer, "Duplicate", f"another {what} has the name {name}", f"a name of its own for each {what}")
