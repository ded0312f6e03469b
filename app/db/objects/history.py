"""The history of a job or of an object of a sample kind: a row for each change, numbered from 1 without gaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Table

from app.db.postgres.columns import Columns, columns, shared_columns
from app.domain.access.actors import Actor
from app.domain.plan import Rank
from app.domain.status.records import HistoryEntry

# Reasons of the rows that record a request of a client. Those of the controller are in the domain's vocabulary.
EDITED = "Edited"
REDACTED = "Redacted"
CANCEL_REQUESTED = "CancelRequested"
REMOVE_REQUESTED = "RemoveRequested"
DELETE_REQUESTED = "DeleteRequested"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """`seq` counts from 1 without gaps."""

    seq: int
    entry: HistoryEntry


class HistoryTable:
    """The statements of one history table. Its primary key is the uid of the job or object, and `seq`."""

    def __init__(self, table: Table) -> None:
        key, _ = (column.name for column in table.primary_key)
        self._entry = shared_columns(table, HistoryEntry).without("actor")
        self._actor = columns(table, "actor", "actor_id")
        self._rank = columns(table, *(name for name in Rank._fields if name in table.c))
        self.columns: Final = columns(table, key, "seq") + self._entry + self._actor + self._rank
        self.insert: Final = f"""
        INSERT INTO {table.name} ({self.columns}) SELECT {self.columns} FROM {self.columns.rows("w")}
        """  # noqa: S608  constants
        self.page: Final = f"""
        SELECT {self.columns} FROM {table.name} WHERE {key} = $1 AND seq > $2 ORDER BY seq LIMIT $3
        """  # noqa: S608  constants

    def values(self, uid: UUID, seq: int, entry: HistoryEntry) -> tuple[Any, ...]:
        rank = (entry.key or (None, None)) if self._rank.names else ()
        return (uid, seq, *self._entry.values(entry), entry.actor.name, entry.actor.id, *rank)

    def arguments(self, uid: UUID, seq: int, entry: HistoryEntry) -> list[list[Any]]:
        """The parameters of `insert` for one row."""
        return Columns.arguments([self.values(uid, seq, entry)])

    def row(self, row: Mapping[str, Any]) -> HistoryRow:
        """The row that `page` returned."""
        about_replica = self._rank.names and row["task"] is not None
        key = Rank(row["task"], row["rank"]) if about_replica else None
        actor = Actor(row["actor"], row["actor_id"])
        return HistoryRow(seq=row["seq"], entry=HistoryEntry(key=key, actor=actor, **self._entry.read(row)))
