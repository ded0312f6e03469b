"""Replaces the values of environment variables of ended jobs, wherever the database has them."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.db.engine import Connection, Database
from app.db.feed import changes
from app.db.history import REDACTED
from app.db.jobs.edits import record_change
from app.db.jobs.rows import COLUMNS, JobRow, job_row
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, NotFound
from app.domain.posted import recall, record
from app.domain.redaction import redacted

_NAMED = "SELECT uid FROM jobs WHERE namespace = $1 AND name = $2 AND finished_at IS NOT NULL ORDER BY created_at"
_LOCK = f"SELECT {COLUMNS} FROM jobs AS j WHERE uid = $1 FOR UPDATE"  # noqa: S608  constants
# No generation and no intent: nothing changes in the cluster.
_REDACT = f"""
UPDATE jobs AS j SET manifest = $2, posted = $3, version = version + 1, history_count = history_count + 1
WHERE uid = $1 RETURNING j.history_count, {COLUMNS}
"""  # noqa: S608  constants
# The key of a batch has the uid and the creation time of its first job only, and its answer contains all of them.
_ANSWERS = """
SELECT scope, key, answer FROM idempotency_keys
WHERE created_at BETWEEN $2::timestamptz - interval '1 minute' AND $2
    AND (job_uid = $1 OR position(convert_to($1::text, 'UTF8') IN answer) > 0)
FOR UPDATE
"""
_ANSWER = "UPDATE idempotency_keys SET answer = $3 WHERE scope = $1 AND key = $2"


async def named(db: Database, namespace: str, name: str) -> list[UUID]:
    """Return the uids of all ended jobs that have had the name, deleted ones included, the oldest first."""
    async with db.read() as connection:
        return [row["uid"] for row in await connection.fetch(_NAMED, namespace, name)]


async def redact(db: Database, uid: UUID, *, actor: Actor, at: datetime) -> JobRow:
    """Replace the values of all environment variables in the manifest, the posted manifest and stored answers.

    Raises:
        NotFound: the job does not exist.
        Conflict: the job has not ended, and its pods need the values.
    """
    async with db.begin() as connection:
        found = await connection.fetchrow(_LOCK, uid)
        if found is None:
            raise NotFound(f"there is no job {uid}")
        job = job_row(found)
        if not job.finished:
            raise Conflict(f"the job is {job.status.phase}: only a job that has ended can be redacted")
        await _redact_answers(connection, job)
        manifest, posted = redacted(job.manifest), recall(job.manifest, job.posted)
        # A posted manifest that cannot be derived from the accepted one is not known, and is dropped.
        kept = None if posted is None else record(manifest, redacted(posted))
        after = await connection.fetchrow(_REDACT, uid, manifest, kept)
        message = "the values of environment variables were removed from the stored manifest"
        return await record_change(connection, after, changes.EDITED, (at, REDACTED, message, actor))


async def _redact_answers(connection: Connection, job: JobRow) -> None:
    """Redact the first answers that are kept for repeated requests: they contain the whole job."""
    for row in await connection.fetch(_ANSWERS, job.uid, job.created_at):
        answer = msgspec.json.encode(redacted(msgspec.json.decode(row["answer"])))
        await connection.execute(_ANSWER, row["scope"], row["key"], answer)
