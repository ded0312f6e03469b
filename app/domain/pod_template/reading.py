"""Reads values of unknown type. A value of the wrong type reads as absent, because the schema reports it."""

from collections.abc import Iterator

from app.domain.decoding import JsonValue
from app.domain.errors import pointer_to

Mapping = dict[str, JsonValue]


def mapping(value: JsonValue) -> Mapping:
    return value if isinstance(value, dict) else {}


def items(owner: Mapping, name: str, pointer: str) -> Iterator[tuple[Mapping, str]]:
    """Yield each object of the list `name`, with its pointer."""
    values = owner.get(name)
    if not isinstance(values, list):
        return
    for index, value in enumerate(values):
        if isinstance(value, dict):
            yield value, pointer_to(pointer, name, index)


def text(owner: Mapping, name: str) -> str:
    value = owner.get(name)
    return value if isinstance(value, str) else ""


def given(owner: Mapping, names: tuple[str, ...]) -> list[str]:
    """Return which of these fields are set."""
    return [name for name in names if owner.get(name) is not None]
