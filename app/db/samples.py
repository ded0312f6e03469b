"""SampleSets and SampleJobs, as the services use them: submit, find, list, change what is wanted of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from app.db.engine import Database
from app.db.queries import Cursor, Query, restrict_after, restrict_labels, restrict_namespaces
from app.db.sample_edits import (
    NewSample,
    SampleAnswer,
    SampleEdit,
    SampleTaken,
    edit,
    first_row,
    insert,
    refuse_leaving,
    request_deletion,
)
from app.db.sample_rows import COLUMNS, SampleEventRow, SampleHistoryRow, SampleRow, sample_row
from app.domain.listing import Criteria
from app.domain.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.selectors import Requirement

__all__ = [
    "Cursor",
    "NewSample",
    "SampleAnswer",
    "SampleEdit",
    "SampleEventRow",
    "SampleFilter",
    "SampleHistoryRow",
    "SamplePage",
    "SampleRow",
    "SampleTaken",
    "SampleVersion",
    "edit",
    "events",
    "find",
    "find_version",
    "first_row",
    "get",
    "get_version",
    "history",
    "insert",
    "page",
    "refuse_leaving",
    "request_deletion",
]


class SampleVersion(NamedTuple):
    """What a rendered sample is cached by."""

    uid: UUID
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter:
    """None or empty: no restriction. `search` is a part of the name. Those that are gone are left out unless asked for,
    or asked for by uid.
    """

    kind: str
    namespaces: NamespaceSet = EVERY_NAMESPACE
    phases: Sequence[str] = ()
    name: str | None = None
    prefix: str | None = None
    search: str | None = None
    set_name: str | None = None
    labels: Sequence[Requirement] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    uids: Sequence[UUID] = ()
    gone: bool = False

    def criteria(self) -> Criteria:
        """The same restrictions, to be held against one SampleSet or SampleJob."""
        return Criteria(
            namespaces=self.namespaces,
            kinds=(self.kind,),
            uids=self.uids,
            name=self.name,
            prefix=self.prefix,
            search=self.search,
            created_after=self.created_after,
            created_before=self.created_before,
            phases=self.phases,
            labels=self.labels,
            set_name=self.set_name,
            with_hidden=self.gone,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePage:
    """`next` is where the following page starts; None at the end."""

    rows: Sequence[SampleRow]
    next: Cursor | None


_BY_NAME: Final = """
COALESCE(
    (SELECT uid FROM samples WHERE kind = $1 AND namespace = $2 AND name = $3 AND gone_at IS NULL),
    (SELECT uid FROM samples WHERE kind = $1 AND namespace = $2 AND name = $3
     ORDER BY created_at DESC, uid DESC LIMIT 1))
"""
_FIND: Final = f"SELECT {COLUMNS} FROM samples AS s WHERE s.uid = {_BY_NAME}"  # noqa: S608  columns of our own
_GET: Final = f"SELECT {COLUMNS} FROM samples AS s WHERE s.uid = $1"  # noqa: S608  columns of our own
_FIND_VERSION: Final = f"SELECT uid, version FROM samples WHERE uid = {_BY_NAME}"  # noqa: S608  names of our own
_GET_VERSION: Final = "SELECT uid, version FROM samples WHERE uid = $1"
_HISTORY: Final = """
SELECT seq, at, phase, reason, message, actor FROM sample_history WHERE uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""
_EVENTS: Final = """
SELECT seq, at, type, reason, message FROM sample_events WHERE uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""


async def get(db: Database, uid: UUID) -> SampleRow | None:
    async with db.read() as connection:
        row = await connection.fetchrow(_GET, uid)
    return None if row is None else sample_row(row)


async def find(db: Database, kind: str, namespace: str, name: str) -> SampleRow | None:
    """The one that has the name now, else the newest that had it."""
    async with db.read() as connection:
        row = await connection.fetchrow(_FIND, kind, namespace, name)
    return None if row is None else sample_row(row)


async def get_version(db: Database, uid: UUID) -> SampleVersion | None:
    async with db.read() as connection:
        row = await connection.fetchrow(_GET_VERSION, uid)
    return None if row is None else SampleVersion(*row)


async def find_version(db: Database, kind: str, namespace: str, name: str) -> SampleVersion | None:
    """`find` without the row: enough to answer from a cache."""
    async with db.read() as connection:
        row = await connection.fetchrow(_FIND_VERSION, kind, namespace, name)
    return None if row is None else SampleVersion(*row)


async def page(db: Database, where: SampleFilter, *, after: Cursor | None = None, limit: int) -> SamplePage:
    """At most `limit` that come after the cursor, the newest first."""
    query = Query(f"SELECT {COLUMNS} FROM samples", "s")  # noqa: S608  columns of our own
    _restrict(query, where)
    restrict_after(query, after)
    async with db.read() as connection:
        rows = await connection.fetch(query.text(limit + 1), *query.arguments)
    found = [sample_row(row) for row in rows[:limit]]
    last = Cursor(found[-1].created_at, found[-1].uid) if len(rows) > limit and found else None
    return SamplePage(rows=found, next=last)


def _restrict(query: Query, where: SampleFilter) -> None:
    query.add("s.kind = {}", where.kind)
    restrict_namespaces(query, where.namespaces)
    if not where.uids and not where.gone:
        query.add("s.gone_at IS NULL")
    for condition, value in (
        ("s.uid = ANY({}::uuid[])", list(where.uids) or None),
        ("s.phase = ANY({}::text[])", list(where.phases) or None),
        ("s.name = {}", where.name),
        ("starts_with(s.name, {})", where.prefix),
        ("strpos(s.name, {}) > 0", where.search),
        ("s.set_name = {}", where.set_name),
        ("s.created_at >= {}", where.created_after),
        ("s.created_at < {}", where.created_before),
    ):
        if value is not None:
            query.add(condition, value)
    restrict_labels(query, where.labels)


async def history(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[SampleHistoryRow]:
    """The oldest first."""
    async with db.read() as connection:
        return [SampleHistoryRow(**row) for row in await connection.fetch(_HISTORY, uid, after_seq, limit)]


async def events(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[SampleEventRow]:
    """The oldest first."""
    async with db.read() as connection:
        return [SampleEventRow(**row) for row in await connection.fetch(_EVENTS, uid, after_seq, limit)]
