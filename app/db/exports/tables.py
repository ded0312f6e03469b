"""The tables and columns that an export has, and the values of their columns as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, JSON, Boolean, Column, Integer, LargeBinary, Table, Text, Uuid

from app.db.postgres.columns import Columns
from app.db.redaction import JOBS
from app.domain.exports.lines import Row
from app.models.jobs import jobs

LEFT_OUT: Final = {
    "posted": "is always null",
    "claim_names": "a trigger derives it",
    "intent_at": "work of the controller: an ended job has none, and an imported one never gets any",
    "wake_at": "as intent_at",
    "quiet": "is true for each exported job",
    "pinned": "as claim_names",
    "planned_pods": "counts only while the job is live",
    "redacted_at": "belongs to the database in which the job was redacted",
    "imported_at": "belongs to the database that has imported the job",
}
"""Columns of `jobs` that an export does not have, beside those that PostgreSQL computes, with the reasons."""

_AwareTime = Annotated[datetime, msgspec.Meta(tz=True)]


@dataclass(frozen=True, kw_only=True)
class ExportedTable:
    """A table of an export. `owner` is the column with the uid of the job, and `key` orders the rows of one job."""

    table: Table
    owner: str
    key: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.table.name)

    @cached_property
    def columns(self) -> Mapping[str, Column[Any]]:
        """The columns of the rows. Rows of records have no uid of their own: they are part of their job."""
        left_out = LEFT_OUT if self.table is jobs else {self.owner}
        return {
            str(column.name): column
            for column in self.table.columns
            if column.name not in left_out and column.computed is None
        }

    @cached_property
    def as_json(self) -> str:
        """The items of a SELECT whose rows `row_to_json` turns into those of an export: bytes are hexadecimal."""
        return ", ".join(
            f"encode({name}, 'hex') AS {name}" if isinstance(column.type, LargeBinary) else name
            for name, column in self.columns.items()
        )


JOB_TABLE: Final = ExportedTable(table=jobs, owner="uid")
RECORD_TABLES: Final = {
    str(records.table.name): ExportedTable(
        table=records.table, owner=records.owner, key=tuple(str(column.name) for column in records.key)
    )
    for records in JOBS.records
}
"""The tables with records of jobs, by name."""


def read_values(table: ExportedTable, row: Row) -> dict[str, Any]:
    """Return the values of a row as statements take them, in the order of the table. JSON stays text.

    A column that a later version has added is missing: it is null, or left out if it has a default.

    Raises:
        ValueError: a column is unknown, is missing and has no default, or has a value of another type.
    """
    if unknown := sorted(row.keys() - table.columns.keys()):
        raise ValueError(f"a row of {table.name} has a column {unknown[0]}, which this version does not know")
    return {
        name: _value(f"{table.name}.{name}", column, row.get(name))
        for name, column in table.columns.items()
        if name in row or column.server_default is None
    }


def insert_columns(table: ExportedTable, names: Mapping[str, Any]) -> Columns:
    """Return those of the columns of a table that have these names."""
    return Columns(column for name, column in table.columns.items() if name in names)


def _value(place: str, column: Column[Any], raw: msgspec.Raw | None) -> Any:
    text = bytes(raw or b"null")
    if text == b"null":
        if not column.nullable:
            raise ValueError(f"{place} is missing")
        return None
    try:
        if isinstance(column.type, JSON):
            return text.decode()
        value = msgspec.json.decode(text, type=_type_of(column))
        return bytes.fromhex(value) if isinstance(column.type, LargeBinary) else value
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _type_of(column: Column[Any]) -> Any:
    for kind, found in ((Uuid, UUID), (Boolean, bool), (Integer, int), (Text, str), (LargeBinary, str)):
        if isinstance(column.type, kind):
            return found
    if isinstance(column.type, ARRAY):
        raise TypeError(f"an export has no column with an array: {column.name}")
    return _AwareTime
