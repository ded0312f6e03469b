"""Jobs, as the services use them: where they are stored, and what is read of jobs alone."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.db import resources
from app.db.engine import Database
from app.db.events import JOBS
from app.db.job_edits import Edit, ScaleChange, edit, request_cancel, request_remove, set_reported
from app.db.job_rows import COLUMNS, SUMMARY_COLUMNS, JobRow, JobSummary, job_row, job_summary
from app.db.resources import Stored
from app.db.rows import StoredReplica, load_attempts, load_replicas
from app.db.scale_records import load_last
from app.db.submit import NewJob, submit
from app.domain.status.records import Attempt, ScaleRecord

__all__ = [
    "STORED",
    "Edit",
    "JobRow",
    "NewJob",
    "ScaleChange",
    "WholeJob",
    "edit",
    "request_cancel",
    "request_remove",
    "set_reported",
    "submit",
    "summaries",
    "whole",
]


STORED: Final = Stored[JobRow](
    resource=JOBS,
    table="jobs",
    alias="j",
    columns=COLUMNS,
    row=job_row,
    holder="SELECT job_uid FROM names WHERE namespace = $1 AND kind = 'job' AND name = $2 AND NOT released",
    history="status_history",
    history_key="job_uid",
    has_ranks=True,
)
# A native status shows no more of them.
SHOWN_SCALE_RECORDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJob:
    """A job with its replicas, the attempts that have ended and its last scale records, all of one moment."""

    row: JobRow
    replicas: Sequence[StoredReplica]
    attempts: Sequence[tuple[str, int, Attempt]]
    scale_records: Sequence[ScaleRecord]


_SUMMARIES = f"SELECT {SUMMARY_COLUMNS} FROM jobs AS j WHERE j.uid = ANY($1::uuid[])"  # noqa: S608  as above


async def summaries(db: Database, uids: Collection[UUID]) -> dict[UUID, JobSummary]:
    """Those of the jobs that exist, as they are now."""
    async with db.read() as connection:
        rows = await connection.fetch(_SUMMARIES, list(uids))
    return {row["uid"]: job_summary(row) for row in rows}


async def whole(db: Database, uid: UUID) -> WholeJob | None:
    """All that a job's status is rendered from."""
    async with db.snapshot() as connection:
        row = await resources.get_in(connection, STORED, uid)
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
