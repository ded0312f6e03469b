"""Scale records: requests for another size of a task, and their outcomes.

`edits.edit` writes the requests, and `controller.persist` writes the outcomes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from app.db.postgres import codec
from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import any_length
from app.domain.status.records import ScaleRecord
from app.models.jobs import scale_records

_COLUMNS: Final = record_columns(scale_records, ScaleRecord)
_PAGE = f"""
SELECT {_COLUMNS} FROM scale_records WHERE job_uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""  # noqa: S608  constants
_OPEN = f"""
SELECT job_uid, {_COLUMNS} FROM scale_records
WHERE job_uid = ANY({any_length("$1::uuid[]")}) AND outcome IS NULL ORDER BY job_uid, seq
"""  # noqa: S608  constants
# LATERAL reads only the newest records of each job, from the end of the primary key.
_LAST = f"""
SELECT w.job_uid, {_COLUMNS} FROM unnest($1::uuid[]) AS w(job_uid)
CROSS JOIN LATERAL (SELECT * FROM scale_records WHERE job_uid = w.job_uid ORDER BY seq DESC LIMIT $2) AS s
ORDER BY w.job_uid, seq
"""  # noqa: S608  constants


async def page(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[ScaleRecord]:
    """Return at most `limit` records with numbers above `after_seq`, the oldest first."""
    async with db.read() as connection:
        return [scale_record_from(row) for row in await connection.fetch(_PAGE, uid, after_seq, limit)]


async def last_of(db: Database, uids: Sequence[UUID], limit: int) -> Mapping[UUID, Sequence[ScaleRecord]]:
    """Return the newest `limit` records of each job that has any, sorted from the oldest to the newest."""
    async with db.read() as connection:
        return await load_last(connection, uids, limit)


async def load_last(connection: Connection, uids: Sequence[UUID], limit: int) -> Mapping[UUID, Sequence[ScaleRecord]]:
    """Return what `last_of` returns, inside the caller's transaction."""
    return _by_job(await connection.fetch(_LAST, uids, limit)) if uids else {}


async def load_open(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[ScaleRecord]]:
    """Return the records of each job that have no outcome yet, the oldest first."""
    return _by_job(await connection.fetch(_OPEN, uids)) if uids else {}


def _by_job(rows: Sequence[Any]) -> Mapping[UUID, Sequence[ScaleRecord]]:
    found: dict[UUID, list[ScaleRecord]] = defaultdict(list)
    for row in rows:
        found[row["job_uid"]].append(scale_record_from(row))
    return found


def scale_record_from(row: Mapping[str, Any]) -> ScaleRecord:
    return codec.load(_COLUMNS.read(row), ScaleRecord)
