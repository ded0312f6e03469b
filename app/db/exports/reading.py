"""Reads the ended jobs of an export, in the order of their ends, with few rows in memory."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.db.exports.tables import JOB_TABLE, RECORD_TABLES, ExportedTable
from app.db.objects.resources import RowVersion
from app.db.postgres.engine import Connection, Database
from app.domain.errors import Conflict
from app.domain.exports.lines import ExportSelection, JobCursor

_JOBS_AT_ONCE: Final = 4  # with manifests of up to 3 MiB, each of them twice
_RECORDS_AT_ONCE: Final = 32  # of one table: at most 32 logs of 64 KiB, twice as long in hexadecimal
_FIRST: Final = JobCursor(datetime.min.replace(tzinfo=UTC), UUID(int=0))

_EXAMINED: Final = 2_000  # jobs that a statement for a page reads at most, whatever they are

_MATCHING: Final = """
($2::text[] = '{}' OR namespace = ANY($2)) AND ($3::text[] = '{}' OR phase = ANY($3))
    AND ($4::text[] = '{}' OR kind = ANY($4))
"""
# Filters that are no conditions leave the index on the end as the only one that serves the statement. Each row says how
# many were examined. The last row is the last one that was examined, whether it matches or not.
# Of a job that is not quiet, the controller still changes records.
_PAGE: Final = f"""
WITH examined AS MATERIALIZED (
    SELECT finished_at, uid, quiet AND {_MATCHING} AS matches FROM jobs
    WHERE finished_at < $1 AND finished_at >= $5 AND (finished_at, uid) > ($5, $6)
    ORDER BY finished_at, uid LIMIT $8
), last AS (SELECT count(*) AS number FROM examined)
(SELECT finished_at, uid, number FROM examined, last WHERE matches ORDER BY finished_at, uid LIMIT $7)
UNION ALL (SELECT finished_at, uid, number FROM examined, last ORDER BY finished_at DESC, uid DESC LIMIT 1)
"""  # noqa: S608  constants
# OFFSET 0 keeps the planner from another index than that of the jobs that are not quiet. Most of them are live.
_LEFT_OUT: Final = f"""
SELECT count(*) FROM (SELECT * FROM jobs WHERE NOT quiet OFFSET 0) AS worked_on
WHERE finished_at < $1 AND {_MATCHING} AND ($5::timestamptz IS NULL OR finished_at >= $5)
"""  # noqa: S608  constants
_VERSIONS: Final = "SELECT uid, version FROM jobs WHERE uid = ANY($1::uuid[]) ORDER BY finished_at, uid"
_REDACTIONS: Final = "SELECT uid, redacted_at FROM jobs WHERE uid = ANY($1::uuid[]) AND redacted_at IS NOT NULL"
# A lock of the session: a transaction as long as an export would keep PostgreSQL from removing dead rows.
_LOCK: Final = "SELECT pg_try_advisory_lock(hashtextextended('export to ' || $1, 0))"
_UNLOCK: Final = "SELECT pg_advisory_unlock(hashtextextended('export to ' || $1, 0))"


class ExportedRow(NamedTuple):
    """A row as JSON."""

    uid: UUID
    json: bytes


def _select(table: ExportedTable) -> str:
    """Return the statement for the rows of jobs $1, in the order of these uids and then of the key."""
    # OFFSET 0 keeps the planner from another order: the rows of each uid are read one after the other.
    order = f"ORDER BY {', '.join(table.key)}" if table.key else ""
    return f"""SELECT wanted.uid, row_to_json(found)::text
        FROM (SELECT * FROM unnest($1::uuid[]) WITH ORDINALITY AS u(uid, number) ORDER BY number OFFSET 0) AS wanted
        CROSS JOIN LATERAL (
            SELECT {table.as_json} FROM {table.name} WHERE {table.owner} = wanted.uid {order} OFFSET 0
        ) AS found"""  # noqa: S608  constants


_JOBS: Final = _select(JOB_TABLE)
_RECORDS: Final = {name: _select(table) for name, table in RECORD_TABLES.items()}


@asynccontextmanager
async def export_lock(db: Database, folder: str) -> AsyncIterator[None]:
    """Run the block as the only export of this database to a folder.

    Raises:
        Conflict: another process exports to it.
    """
    async with db.read() as connection:
        if not await connection.fetchval(_LOCK, folder):
            raise Conflict(f"another process exports to {folder}: wait until it ends")
        try:
            yield
        finally:
            await connection.execute(_UNLOCK, folder)


async def count_left_out(db: Database, selection: ExportSelection) -> int:
    """Return how many jobs of a selection have ended, but are left out because the controller still works on them."""
    async with db.read() as connection:
        return int(await connection.fetchval(_LEFT_OUT, *_arguments(selection)))


class ExportPage(NamedTuple):
    """The cursors of `jobs`, and how far the search has come: to `until`, a job of any selection, or to the end."""

    jobs: Sequence[JobCursor]
    until: JobCursor | None
    is_last: bool


async def page(
    connection: Connection,
    selection: ExportSelection,
    after: JobCursor | None,
    limit: int,
    examined: int = _EXAMINED,
) -> ExportPage:
    """Return at most `limit` jobs of a selection that follow a cursor. At most `examined` are read for it."""
    before, *lists, begin = _arguments(selection)
    start = after or (JobCursor(begin, _FIRST.uid) if begin else _FIRST)
    rows = await connection.fetch(_PAGE, before, *lists, *start, limit, examined)
    if not rows:
        return ExportPage([], None, is_last=True)
    *jobs, last = [JobCursor(row["finished_at"], row["uid"]) for row in rows]
    if len(jobs) == limit:
        return ExportPage(jobs, jobs[-1], is_last=False)
    return ExportPage(jobs, last, is_last=rows[0]["number"] < examined)


async def versions(connection: Connection, uids: Sequence[UUID]) -> Sequence[RowVersion]:
    """Return the versions of those jobs that exist, in the order of an export."""
    return [RowVersion(*row) for row in await connection.fetch(_VERSIONS, uids)]


async def redactions(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, datetime]:
    """Return when each of the jobs was redacted, if it was. Another time means that it was redacted again."""
    return dict(await connection.fetch(_REDACTIONS, list(uids)))


def _arguments(selection: ExportSelection) -> tuple[Any, ...]:
    lists = (list(selection.namespaces), list(selection.phases), list(selection.kinds))
    return (selection.before, *lists, selection.after)


class JobRows:
    """The rows of several jobs, one job after the other, in one transaction whose statements see the same snapshot."""

    def __init__(self, connection: Connection, uids: Sequence[UUID]) -> None:
        self._jobs = _rows(connection, _JOBS, uids, _JOBS_AT_ONCE)
        self._records = {
            name: _RowsByJob(_rows(connection, text, uids, _RECORDS_AT_ONCE)) for name, text in _RECORDS.items()
        }

    async def jobs(self) -> AsyncIterator[ExportedRow]:
        """Yield the row of each job that exists. Read the records of each before the next one."""
        async for row in self._jobs:
            yield row

    async def records(self, uid: UUID) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the records of a job, each with the name of its table."""
        for name, rows in self._records.items():
            async for row in rows.of(uid):
                yield name, row


async def _rows(
    connection: Connection, statement: str, uids: Sequence[UUID], at_once: int
) -> AsyncIterator[ExportedRow]:
    async for uid, text in connection.cursor(statement, list(uids), prefetch=at_once):
        yield ExportedRow(uid, text.encode())


class _RowsByJob:
    """Rows in the order of their jobs. The first row of the next job is read to find the end of the present one."""

    def __init__(self, rows: AsyncIterator[ExportedRow]) -> None:
        self._rows = rows
        self._next: ExportedRow | None = None

    async def of(self, uid: UUID) -> AsyncIterator[bytes]:
        """Yield the rows of this job, which come next."""
        while (row := self._next or await anext(self._rows, None)) is not None:
            self._next = row
            if row.uid != uid:
                return
            self._next = None
            yield row.json
