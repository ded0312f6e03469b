"""Reads that all resources of the API share, parametrised by a description of how each is stored."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import UUID

from sqlalchemy import Table

from app.db.objects.history import HistoryRow, HistoryTable
from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import any_length
from app.domain.kinds.base import JOBS
from app.domain.listing import ListItem
from app.domain.plan import Manifest
from app.models.jobs import jobs
from app.models.samples import samples
from app.telemetry.trace_context import Traced


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRow(Traced):
    """The stored fields that objects of all resources have, and summaries of them."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    labels: Mapping[str, str]
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    generation: int = 1
    version: int = 1


class StoredRow(Protocol):
    """What the rows of all resources have: the fields of ObjectRow, a manifest, and the state of the deletion."""

    @property
    def uid(self) -> UUID: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def manifest(self) -> Manifest: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def deleted_at(self) -> datetime | None: ...
    @property
    def is_in_cluster(self) -> bool:
        """Whether the cluster may have objects of it."""


Row = TypeVar("Row", bound=StoredRow)


Check: TypeAlias = Callable[[StoredRow], None]
"""Raises an error if the locked row is not what the caller of a change expects."""


RowKey: TypeAlias = UUID | tuple[str, str]
"""A uid, or a namespace and a name. A name means the row that holds it, or else the newest that held it."""


class RowVersion(NamedTuple):
    """A row at one version, such as the one that an export has copied."""

    uid: UUID
    version: int


class FoundRow(NamedTuple):
    """The row that a uid or a name identifies: its current version, and the namespace that a caller must see."""

    uid: UUID
    version: int
    namespace: str


_JOBS: Final = f"""
SELECT {record_columns(jobs, ListItem, elsewhere=["set_name", "queue", "still_running", "deleted"])},
  coalesce(status -> 'queueing' ->> 'name', '') AS queue, status ? 'still_running' AS still_running,
  deleted_at IS NOT NULL AS deleted
FROM jobs WHERE uid = ANY($1::uuid[])
"""  # noqa: S608  constants
_SAMPLES: Final = f"""
SELECT {record_columns(samples, ListItem, elsewhere=["queue", "still_running", "deleted"])},
  delete_requested_at IS NOT NULL AS deleted
FROM samples WHERE uid = ANY($1::uuid[])
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedIndex:
    """An index whose entries are in the order of lists among those with equal values of `columns`.

    `condition` is its predicate, for the alias `{at}`. An index with `only_present` has no deleted rows.
    """

    columns: tuple[str, ...] = ()
    condition: str = "true"
    only_present: bool = False


@dataclass(frozen=True, kw_only=True)
class Stored(Generic[Row]):
    """Describes how a resource is stored, in constant SQL fragments.

    `columns` of `table AS alias` are the input of `row`. `summary_columns` are those of `summary`, which returns what a
    list of summaries shows. `only` selects the rows of the table that belong to the resource. `holder` selects the uid
    of the row that holds the name $2 in the namespace $1. `deleted` is the column with the time of the deletion.
    `sorted_indexes` and `indexed` describe the indexes that lists use, see `app/db/lists/pages.py`: those in the order
    of lists, and the attributes that have another index. `kinds` is a statement for the kinds of the present rows;
    without it, all rows are of one kind.
    """

    resource: str
    table: Table
    alias: str
    columns: str
    row: Callable[[Mapping[str, Any]], Row]
    summary_columns: str
    summary: Callable[[Mapping[str, Any]], Any]
    holder: str
    deleted: str = "deleted_at"
    only: str = "true"
    kinds: str = ""
    history: HistoryTable
    sorted_indexes: Sequence[SortedIndex]
    indexed: Collection[str]

    @cached_property
    def by_uid(self) -> str:
        return (
            f"SELECT {self.columns} FROM {self.table.name} AS {self.alias} WHERE {self.alias}.uid = $1 AND {self.only}"  # noqa: S608
        )

    @cached_property
    def by_uids(self) -> str:
        return f"SELECT {self.columns} FROM {self.table.name} AS {self.alias} WHERE {self.alias}.uid = ANY($1::uuid[])"  # noqa: S608

    @cached_property
    def by_name(self) -> str:
        return (
            f"SELECT {self.columns} FROM {self.table.name} AS {self.alias} WHERE {self.alias}.uid = {self._uid_of_name}"  # noqa: S608
        )

    @cached_property
    def sizes(self) -> str:
        """The sizes of the manifests of rows, as text. PostgreSQL reads and decompresses the manifests for them."""
        return f"SELECT uid, octet_length(manifest::text) FROM {self.table.name} WHERE uid = ANY($1::uuid[])"  # noqa: S608

    @property
    def stored_size(self) -> str:
        """The SQL expression of the size of the manifest of a row as stored, mostly compressed.

        PostgreSQL reads it without the manifest.
        """
        return f"pg_column_size({self.alias}.manifest)"

    @cached_property
    def posted(self) -> str:
        return f"SELECT posted_manifest FROM {self.table.name} WHERE uid = $1"  # noqa: S608

    @cached_property
    def posted_size(self) -> str:
        return f"SELECT octet_length(posted_manifest::text) FROM {self.table.name} WHERE uid = $1"  # noqa: S608

    @cached_property
    def versions_by_uid(self) -> str:
        return f"""SELECT uid, version, namespace FROM {self.table.name} AS {self.alias}
            WHERE uid = ANY({any_length("$1::uuid[]")}) AND {self.only}"""  # noqa: S608

    @cached_property
    def versions_by_name(self) -> str:
        # Each name is found by the expression that `by_name` uses. A join would permit plans that read the whole table.
        arrays = f"{any_length('$1::text[]')}, {any_length('$2::text[]')}"
        return f"""SELECT asked.number, {self.alias}.uid, {self.alias}.version, {self.alias}.namespace
            FROM unnest({arrays}) WITH ORDINALITY AS asked(namespace, name, number)
            CROSS JOIN LATERAL (SELECT {self._uid_of("asked.namespace", "asked.name")} AS uid OFFSET 0) AS named
            JOIN {self.table.name} AS {self.alias} ON {self.alias}.uid = named.uid"""  # noqa: S608

    @property
    def _uid_of_name(self) -> str:
        return self._uid_of("$1", "$2")

    def _uid_of(self, namespace: str, name: str) -> str:
        """Return the SQL expression of the uid of the row that holds the name, or else of the newest that held it."""
        newest = f"""SELECT uid FROM {self.table.name} AS {self.alias}
            WHERE namespace = $1 AND name = $2 AND {self.only} ORDER BY created_at DESC, uid DESC LIMIT 1"""  # noqa: S608
        return f"COALESCE(({self.holder}), ({newest}))".replace("$1", namespace).replace("$2", name)


async def find(db: Database, stored: Stored[Row], namespace: str, name: str) -> Row | None:
    """Return the row that holds the name, or else the newest row that held it."""
    async with db.read() as connection:
        row = await connection.fetchrow(stored.by_name, namespace, name)
    return None if row is None else stored.row(row)


async def get(db: Database, stored: Stored[Row], uid: UUID) -> Row | None:
    async with db.read() as connection:
        return await get_in(connection, stored, uid)


async def get_in(connection: Connection, stored: Stored[Row], uid: UUID) -> Row | None:
    row = await connection.fetchrow(stored.by_uid, uid)
    return None if row is None else stored.row(row)


async def versions(db: Database, stored: Stored[Row], keys: Sequence[RowKey]) -> dict[RowKey, FoundRow]:
    """Return the versions of the rows that `find` and `get` return, for those keys that have a row.

    All keys of one form are read with one statement.
    """
    named = [key for key in keys if isinstance(key, tuple)]
    uids = [key for key in keys if not isinstance(key, tuple)]
    found: dict[RowKey, FoundRow] = {}
    async with db.read() as connection:
        if named:
            namespaces, names = zip(*named, strict=True)
            for number, *row in await connection.fetch(stored.versions_by_name, namespaces, names):
                found[named[number - 1]] = FoundRow(*row)
        if uids:
            for row in await connection.fetch(stored.versions_by_uid, uids):
                found[row["uid"]] = FoundRow(*row)
    return found


async def read_posted(db: Database, stored: Stored[Row], uid: UUID) -> Manifest | None:
    """Return the manifest of the row as it was posted. None if that is not known."""
    async with db.read() as connection:
        found: Manifest | None = await connection.fetchval(stored.posted, uid)
        return found


async def read_posted_size(db: Database, stored: Stored[Row], uid: UUID) -> int:
    """Return the size of what `read_posted` returns, in bytes of text."""
    async with db.read() as connection:
        return await connection.fetchval(stored.posted_size, uid) or 0


async def sizes(db: Database, stored: Stored[Row], uids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the sizes of the manifests of the existing rows among these, in bytes of text."""
    async with db.read() as connection:
        return await sizes_in(connection, stored, uids)


async def sizes_in(connection: Connection, stored: Stored[Row], uids: Sequence[UUID]) -> dict[UUID, int]:
    return dict(await connection.fetch(stored.sizes, uids))


async def history(db: Database, stored: Stored[Row], uid: UUID, *, after_seq: int = 0, limit: int) -> list[HistoryRow]:
    """Return at most `limit` history rows with numbers above `after_seq`, the oldest first."""
    async with db.read() as connection:
        return [stored.history.row(row) for row in await connection.fetch(stored.history.page, uid, after_seq, limit)]


async def read_list_items(db: Database, resource: str, uids: Collection[UUID]) -> Mapping[UUID, ListItem]:
    """Return the fields that list filters use, for those of the objects that exist."""
    async with db.read() as connection:
        rows = await connection.fetch(_JOBS if resource == JOBS else _SAMPLES, list(uids))
    return {row["uid"]: ListItem(**row) for row in rows}
