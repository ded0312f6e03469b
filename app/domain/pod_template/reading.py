"""Reads values of unknown type. A value of the wrong type reads as absent, because the schema reports it."""

from collections.abc import Iterator

from app.domain.decoding import JsonValue
from app.domain.errors import pointer_to

Mapping = dict[str, JsonValue]


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


def given(owner: Mapping, names: tuple[str, ...]) -> list[str]:
    """Return which of these fields are set."""
    return [name for name in names if owner.get(name) is not None]
