"""The conditions of an object, by their types."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from app.domain.errors import shorten
from app.domain.kubernetes.objects import ObjectCondition

Conditions: TypeAlias = Mapping[str, ObjectCondition]


def by_type(conditions: Iterable[ObjectCondition]) -> Conditions:
    return {item.type: item for item in conditions}


def is_true(conditions: Conditions, kind: str) -> bool:
    return kind in conditions and conditions[kind].status == "True"


def message_line(condition: ObjectCondition, limit: int) -> str:
    """Return the message of a condition as one line of at most `limit` characters."""
    return shorten(" ".join(condition.message.split()), limit)
