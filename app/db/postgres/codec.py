"""Domain values as JSON, and back. Pure."""

from typing import Any, TypeVar

import msgspec

from app.db.postgres.errors import NotStorable

_T = TypeVar("_T")


def dump(value: Any) -> Any:
    """Return the value as JSON can represent it: enums as their text, times as RFC 3339."""
    return msgspec.to_builtins(value, str_keys=True)


def load(value: Any, into: type[_T]) -> _T:
    """Return the value that `dump` was given. A field that an older version did not store has its default."""
    return msgspec.convert(value, into, str_keys=True)


def text_of(value: Any) -> str:
    """Return the value as JSON text.

    Raises:
        NotStorable: it contains a lone surrogate, or is nested deeper than any document that a parser accepts.
    """
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, RecursionError) as error:
        raise NotStorable("the database cannot store this: it is not JSON") from error
