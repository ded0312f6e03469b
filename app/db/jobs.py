"""Jobs, as the services use them: submit, find, list, change what is wanted of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from app.db.engine import Connection, Database
from app.db.job_edits import Edit, ScaleChange, edit, request_cancel, request_remove, set_reported
from app.db.job_pages import JobFilter, JobPage, page
from app.db.job_rows import COLUMNS, SUMMARY_COLUMNS, JobRow, JobSummary, job_row, job_summary
from app.db.queries import Cursor
from app.db.rows import StoredReplica, load_attempts, load_replicas
from app.db.scale_records import load_last
from app.db.submit import (
    Answer,
    IdempotencyKey,
    KeyConflict,
    KeyInFlight,
    NameTaken,
    NewJob,
    Replayed,
    Submitted,
    submit,
)
from app.domain.status.records import Attempt, ScaleRecord

__all__ = [
    "Answer",
    "Cursor",
    "Edit",
    "IdempotencyKey",
    "JobFilter",
    "JobPage",
    "JobRow",
    "JobVersion",
    "KeyConflict",
    "KeyInFlight",
    "NameTaken",
    "NewJob",
    "Replayed",
    "ScaleChange",
    "Submitted",
    "WholeJob",
    "edit",
    "find",
    "find_version",
    "get",
    "get_version",
    "page",
    "request_cancel",
    "request_remove",
    "set_reported",
    "submit",
    "summaries",
    "whole",
]


# A native status shows no more of them.
SHOWN_SCALE_RECORDS = 100


class JobVersion(NamedTuple):
    """What a rendered job is cached by."""

    uid: UUID
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJob:
    """A job with its replicas, the attempts that have ended and its last scale records, all of one moment."""

    row: JobRow
    replicas: Sequence[StoredReplica]
    attempts: Sequence[tuple[str, int, Attempt]]
    scale_records: Sequence[ScaleRecord]


_BY_NAME = """
COALESCE(
    (SELECT job_uid FROM names WHERE namespace = $1 AND kind = 'job' AND name = $2 AND NOT released),
    (SELECT uid FROM jobs WHERE namespace = $1 AND name = $2 ORDER BY created_at DESC, uid DESC LIMIT 1))
"""
_FIND = f"SELECT {COLUMNS} FROM jobs AS j WHERE j.uid = {_BY_NAME}"  # noqa: S608  columns and names of our own
_GET = f"SELECT {COLUMNS} FROM jobs AS j WHERE j.uid = $1"  # noqa: S608  columns of our own
_SUMMARIES = f"SELECT {SUMMARY_COLUMNS} FROM jobs AS j WHERE j.uid = ANY($1::uuid[])"  # noqa: S608  as above
_FIND_VERSION = f"SELECT uid, version FROM jobs WHERE uid = {_BY_NAME}"  # noqa: S608  names of our own
_GET_VERSION = "SELECT uid, version FROM jobs WHERE uid = $1"


async def find(db: Database, namespace: str, name: str) -> JobRow | None:
    """The live job of that name, else the newest."""
    async with db.read() as connection:
        row = await connection.fetchrow(_FIND, namespace, name)
    return None if row is None else job_row(row)


async def get(db: Database, uid: UUID) -> JobRow | None:
    async with db.read() as connection:
        return await _get(connection, uid)


async def summaries(db: Database, uids: Collection[UUID]) -> dict[UUID, JobSummary]:
    """Those of the jobs that exist, as they are now."""
    async with db.read() as connection:
        rows = await connection.fetch(_SUMMARIES, list(uids))
    return {row["uid"]: job_summary(row) for row in rows}


async def find_version(db: Database, namespace: str, name: str) -> JobVersion | None:
    """`find` without the job: enough to answer from a cache."""
    async with db.read() as connection:
        row = await connection.fetchrow(_FIND_VERSION, namespace, name)
    return None if row is None else JobVersion(*row)


async def get_version(db: Database, uid: UUID) -> JobVersion | None:
    async with db.read() as connection:
        row = await connection.fetchrow(_GET_VERSION, uid)
    return None if row is None else JobVersion(*row)


async def whole(db: Database, uid: UUID) -> WholeJob | None:
    """All that a job's status is rendered from."""
    async with db.snapshot() as connection:
        row = await _get(connection, uid)
        if row is None:
            return None
        replicas = await load_replicas(connection, [uid])
        attempts = await load_attempts(connection, [uid])
        records = await load_last(connection, [uid] if row.scale_count else [], SHOWN_SCALE_RECORDS)
    return WholeJob(
        row=row,
        replicas=replicas.get(uid, ()),
        attempts=attempts.get(uid, ()),
        scale_records=records.get(uid, ()),
    )


async def _get(connection: Connection, uid: UUID) -> JobRow | None:
    row = await connection.fetchrow(_GET, uid)
    return None if row is None else job_row(row)
