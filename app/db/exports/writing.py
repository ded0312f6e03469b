"""Stores imported jobs: ended, read only, and without any work for the controller.

An imported job has no names, no feed entry and no intent, and its objects count as gone. So it blocks no live job, no
watcher sees a transition, and no reconcile loads it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from app.db.exports.tables import JOB_TABLE, RECORD_TABLES, insert_columns
from app.db.postgres.columns import Columns
from app.db.postgres.engine import Connection
from app.domain.errors import Conflict

Values = Mapping[str, Any]
"""The values of a row by the names of its columns."""

_IS_BEING_PURGED: Final = "SELECT has_records FROM purged WHERE uid = $1"
_PRESENT: Final = "SELECT namespace, name, created_at, imported_at FROM jobs WHERE uid = $1"


async def insert_job(connection: Connection, values: Values, at: datetime) -> bool:
    """Store the row of a job. Return False if the same job is stored already.

    Raises:
        ValueError: another job has its uid.
        Conflict: the job was purged, and its records are still being deleted. Those of the import would be, too.
    """
    uid = values["uid"]
    names = tuple(values)
    arguments = Columns.arguments([tuple(values.values())])
    if await connection.fetchval(_insert_job(names), *arguments, at) is not None:
        # After the insertion, which waits for the end of a purge of the same job.
        if await connection.fetchval(_IS_BEING_PURGED, uid):
            raise Conflict(f"the records of the job {uid} are still being deleted: import it a minute later")
        return True
    present = await connection.fetchrow(_PRESENT, uid)
    # A redaction, an edit of the labels or a deletion after the export leaves these three as they are.
    if present is not None and any(present[name] != values[name] for name in ("namespace", "name", "created_at")):
        raise ValueError(f"the uid {uid} is that of the job {present['namespace']}/{present['name']}")
    return False


async def insert_records(connection: Connection, table: str, uid: UUID, rows: Sequence[Values]) -> None:
    """Store records of a job in a table.

    Raises:
        ValueError: two rows have the same key.
    """
    # Rows that several versions have exported may have other columns.
    for names, alike in groupby(rows, key=tuple):
        values = [tuple(row.values()) for row in alike]
        status: str = await connection.execute(_insert_records(table, names), *Columns.arguments(values), uid)
        if int(status.rpartition(" ")[2]) != len(values):
            raise ValueError(f"the job has a row of {table} twice")


# With a higher version than the exported one: processes may have cached the job of that version before it was purged.
@cache
def _insert_job(names: tuple[str, ...]) -> str:
    found = _check_order(insert_columns(JOB_TABLE, dict.fromkeys(names)), names)
    at = f"${len(names) + 1}::timestamptz"
    plain = found.without("version", "gone_at")
    return f"""INSERT INTO jobs ({plain}, version, gone_at, quiet, imported_at)
        SELECT {plain}, version + 1, COALESCE(gone_at, {at}), true, {at} FROM {found.rows("w")}
        ON CONFLICT (uid) DO NOTHING RETURNING uid"""  # noqa: S608  constants


@cache
def _insert_records(table: str, names: tuple[str, ...]) -> str:
    described = RECORD_TABLES[table]
    found = _check_order(insert_columns(described, dict.fromkeys(names)), names)
    return f"""INSERT INTO {table} ({described.owner}, {found})
        SELECT ${len(names) + 1}::uuid, {found} FROM {found.rows("w")} ON CONFLICT DO NOTHING"""  # noqa: S608  constants


def _check_order(columns: Columns, names: tuple[str, ...]) -> Columns:
    assert columns.names == names, "`read_values` returns the columns in the order of the table"
    return columns
