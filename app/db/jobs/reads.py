"""Reads of whole jobs, and of the summaries that statuses are rendered from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.jobs.attempts import load_attempts
from app.db.jobs.replicas import StoredReplica, load_replicas
from app.db.jobs.rows import STORED_JOBS, SUMMARY_COLUMNS, JobRow, JobSummary, job_summary
from app.db.jobs.scale_records import load_last
from app.db.objects import resources
from app.db.postgres.engine import Database
from app.domain.status.records import Attempt, ScaleRecord

# The number of scale records that a native status shows.
SHOWN_SCALE_RECORDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJob:
    """A job with its replicas, ended attempts and newest scale records, read in one snapshot."""

    row: JobRow
    replicas: Sequence[StoredReplica]
    attempts: Sequence[tuple[str, int, Attempt]]
    scale_records: Sequence[ScaleRecord]


_SUMMARIES = f"SELECT {SUMMARY_COLUMNS} FROM jobs AS j WHERE j.uid = ANY($1::uuid[])"  # noqa: S608  as above


async def summaries(db: Database, uids: Collection[UUID]) -> dict[UUID, JobSummary]:
    """Return the summaries of those of the jobs that exist."""
    async with db.read() as connection:
        rows = await connection.fetch(_SUMMARIES, list(uids))
    return {row["uid"]: job_summary(row) for row in rows}


async def whole(db: Database, uid: UUID) -> WholeJob | None:
    """Read everything that a complete status contains. Return None if the job does not exist."""
    async with db.snapshot() as connection:
        row = await resources.get_in(connection, STORED_JOBS, uid)
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
