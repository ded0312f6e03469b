"""Domain values to what columns hold, and back. Pure.

A job's status is spread over columns (what is filtered, sorted or shown in lists), the conditions' rows and one
JSON document with the rest; a replica's attempt has a column a field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from app.db.errors import NotStorable
from app.domain.status.records import Attempt, Condition, JobStatus
from app.domain.vocabulary import ConditionType

_T = TypeVar("_T")

STATUS_COLUMNS = ("phase", "reason", "message", "observed_generation", "started_at", "finished_at", "gone_at", "quiet")
_NOT_IN_DOCUMENT = (*STATUS_COLUMNS, "conditions")
ATTEMPT_COLUMNS = tuple(field.name for field in fields(Attempt) if field.name != "number")
CONDITION_COLUMNS = tuple(field.name for field in fields(Condition))


def dump(value: Any) -> Any:
    """What JSON can say: enums as their text, moments as RFC 3339."""
    return msgspec.to_builtins(value, str_keys=True)


def load(value: Any, into: type[_T]) -> _T:
    return msgspec.convert(value, into, str_keys=True)


def text_of(value: Any) -> str:
    """A JSON document as text, for the bulk statements: an array of arrays would be taken for a matrix.

    Raises:
        NotStorable: it holds a lone surrogate, or nests deeper than anything that was parsed.
    """
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, RecursionError) as error:
        raise NotStorable("the database cannot store this: it is not JSON") from error


def status_document(status: JobStatus) -> dict[str, Any]:
    """The part of a status that has no column."""
    document: dict[str, Any] = dump(status)
    for name in _NOT_IN_DOCUMENT:
        del document[name]
    return document


def status_from(row: Mapping[str, Any], conditions: Sequence[Condition]) -> JobStatus:
    """Put a status together from a job's row and its conditions."""
    columns = {name: row[name] for name in STATUS_COLUMNS}
    return load({**row["status"], **columns, "conditions": tuple(conditions)}, JobStatus)


def condition_values(condition: Condition) -> tuple[Any, ...]:
    return tuple(getattr(condition, name) for name in CONDITION_COLUMNS)


def condition_from(row: Mapping[str, Any]) -> Condition:
    values = {name: row[name] for name in CONDITION_COLUMNS}
    return Condition(**{**values, "type": ConditionType(values["type"])})


def attempt_values(attempt: Attempt) -> tuple[Any, ...]:
    """In the order of ATTEMPT_COLUMNS; containers as JSON text."""
    *plain, containers = (getattr(attempt, name) for name in ATTEMPT_COLUMNS)
    return (*plain, text_of(containers))


def attempt_from(row: Mapping[str, Any], number: int) -> Attempt:
    return load({"number": number} | {name: row[name] for name in ATTEMPT_COLUMNS}, Attempt)


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows to columns, as `unnest` takes them. `rows` is not empty."""
    return [list(column) for column in zip(*rows, strict=True)]
