"""Column lists of statements, derived from the tables of `app.models` and the record classes that hold their rows.

A field of a record is stored in the column of the same name. So a new column needs the column in the model, its
migration, and the field in the record; the statements follow, because they are made of fragments:

    RUN = record_columns(runs, Run)

    f"SELECT {RUN} FROM runs"                                      Run(**RUN.read(row))
    f"INSERT INTO runs ({RUN}) SELECT {RUN} FROM {RUN.rows('w')}"  execute(statement, *RUN.arguments(rows))
    f"UPDATE runs AS r SET {RUN.assignments('w')} FROM {RUN.rows('w')} WHERE r.id = w.id"

`rows` takes one array for each column, so one statement writes any number of rows. Modules build their statements once,
when they are imported.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from sqlalchemy import ARRAY, JSON, Column, Table
from sqlalchemy.dialects.postgresql import dialect
from typing_extensions import override

from app.db.postgres import codec
from app.db.postgres.queries import any_length

_DIALECT = dialect()


class Columns:
    """Columns in the order in which a statement lists them. No two have the same name."""

    def __init__(self, columns: Iterable[Column[Any]]) -> None:
        self._columns = tuple(columns)
        # Plain text: SQLAlchemy's own class of names is not a key that msgspec accepts.
        self.names = tuple(str(column.name) for column in self._columns)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"a column is listed twice: {', '.join(self.names)}")
        self._get = attrgetter(*self.names) if self.names else tuple
        self._json = tuple(index for index, column in enumerate(self._columns) if isinstance(column.type, JSON))

    def __add__(self, other: "Columns") -> "Columns":
        return Columns((*self._columns, *other._columns))

    def without(self, *names: str) -> "Columns":
        return Columns(column for column in self._columns if column.name not in names)

    @override
    def __str__(self) -> str:
        """The names, for SELECT, INSERT and RETURNING."""
        return ", ".join(self.names)

    def of(self, alias: str) -> str:
        """The names, each qualified by the alias of a table."""
        return ", ".join(f"{alias}.{name}" for name in self.names)

    def assignments(self, source: str) -> str:
        """The assignments of an UPDATE that takes every value from the columns of `source`."""
        return ", ".join(f"{name} = {source}.{name}" for name in self.names)

    def rows(self, alias: str, *, first: int = 1, number: str = "") -> str:
        """The FROM item with the rows of `arguments`, which are the parameters from number `first` on.

        `number` names an additional column with the number of each row, from 1.
        """
        longest, *others = (f"${first + n}::{_array_of(column)}" for n, column in enumerate(self._columns))
        # The planner expects as many rows as the longest array has.
        arrays = ", ".join([any_length(longest), *others])
        values = ", ".join(map(_decode, self._columns))
        names = str(self)
        if number:
            values, names, arrays = f"{values}, {number}", f"{names}, {number}", f"{arrays}) WITH ORDINALITY"
        else:
            arrays += ")"
        return f"(SELECT {values} FROM unnest({arrays} AS a({names})) AS {alias}"  # noqa: S608  constants

    def values(self, record: Any) -> tuple[Any, ...]:
        """The record's value of each column."""
        # An attrgetter of one name returns the bare value.
        values = self._get(record)
        return self.encode(values) if len(self.names) > 1 else self.encode((values,))

    def encode(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Replace JSON values by their text: asyncpg would take an array of arrays for one array of two dimensions.

        Raises:
            NotStorable: a value cannot be JSON.
        """
        if not self._json:
            return values
        encoded = list(values)
        for index in self._json:
            if encoded[index] is not None:
                encoded[index] = codec.text_of(encoded[index])
        return tuple(encoded)

    @staticmethod
    def arguments(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The parameters of `rows`: one array for each column. There is at least one row.

        `unnest` fills shorter arrays with nulls, so a column of nulls is an empty array, except the first column, which
        has all rows. asyncpg spends as much time on a null as on any other item.
        """
        first, *others = zip(*rows, strict=True)
        return [list(first), *([] if _has_only_nulls(column) else list(column) for column in others)]

    def read(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a row that was read, by name."""
        return {name: row[name] for name in self.names}


def _has_only_nulls(values: Sequence[Any]) -> bool:
    # Most columns have a value in the first row, and comparing all values, such as uids, with None takes longer.
    return values[0] is None and all(value is None for value in values)


def columns(table: Table, *names: str) -> Columns:
    return Columns(table.c[name] for name in names)


def record_columns(table: Table, record: type, *, elsewhere: Collection[str] = ()) -> Columns:
    """The columns of the table that hold the fields of the record, in the order of the table.

    Raises:
        ValueError: a field has no column, and is not among those that the caller stores `elsewhere`.
    """
    stored = set(_fields(record)) - set(elsewhere)
    if lacking := stored - set(table.c.keys()):
        raise ValueError(f"the table {table.name} has no column for {', '.join(sorted(lacking))} of {record.__name__}")
    return Columns(column for column in table.c if column.name in stored)


def shared_columns(table: Table, record: type) -> Columns:
    """The columns of the table that are fields of the record; the other fields are part of a document."""
    return Columns(column for column in table.c if column.name in _fields(record))


def _fields(record: type) -> Collection[str]:
    if is_dataclass(record):
        return [field.name for field in fields(record)]
    names: tuple[str, ...] = getattr(record, "_fields", ())  # of a NamedTuple
    return names


def _array_of(column: Column[Any]) -> str:
    if isinstance(column.type, ARRAY):
        raise TypeError(f"unnest would flatten the arrays of {column.name}")
    return "text[]" if isinstance(column.type, JSON) else f"{_type_of(column)}[]"


def _decode(column: Column[Any]) -> str:
    """The value of a column of arrays: JSON is sent as text."""
    return f"{column.name}::{_type_of(column)} AS {column.name}" if isinstance(column.type, JSON) else column.name


def _type_of(column: Column[Any]) -> str:
    name: str = column.type.compile(dialect=_DIALECT)
    # The type of an array has no collation.
    return name.partition(" COLLATE ")[0].lower()
