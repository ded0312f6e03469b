"""Removes kept logs. Their objects are deleted afterwards, from the table of deletions, so that none is forgotten.

A transaction removes the rows of chunks and notes the names of their objects. A process that keeps logs then deletes
the objects, and last the notes.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from app.db.kept_logs import ALL_JOBS, LogSize, add_to_totals
from app.db.postgres.columns import Columns, columns
from app.db.postgres.engine import Connection, Database
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason, KeptLogState
from app.models.kept_logs import log_chunks

_KEY: Final = columns(log_chunks, *LogKey._fields)
_CHUNK: Final = _KEY + columns(log_chunks, "start", "object_name")
_NOTE: Final = """
INSERT INTO log_deletions (object_name, requested_at)
SELECT object_name, $2 FROM gone WHERE object_name IS NOT NULL ON CONFLICT DO NOTHING
"""
# Rows that another process removes now are left to it.
_REMOVE_EXPIRED: Final = f"""
WITH old AS (
    SELECT {_KEY} FROM kept_logs
    WHERE namespace = $3 AND finished_at < $1 AND NOT EXISTS (SELECT FROM jobs WHERE uid = job_uid AND pinned)
    ORDER BY finished_at LIMIT $4 FOR UPDATE SKIP LOCKED
), dead AS (
    DELETE FROM kept_logs AS l USING old AS o WHERE ({_KEY.of("l")}) = ({_KEY.of("o")})
    RETURNING l.namespace, l.text_bytes, l.stored_bytes, {_KEY.of("l")}
), gone AS (
    DELETE FROM log_chunks AS c USING dead AS d WHERE ({_KEY.of("c")}) = ({_KEY.of("d")}) RETURNING c.object_name
), noted AS ({_NOTE})
SELECT namespace, job_uid, -text_bytes, -stored_bytes FROM dead
"""  # noqa: S608  constants
_FORGET_TOTALS: Final = """
DELETE FROM kept_log_totals WHERE job_uid = ANY($1::uuid[]) AND text_bytes <= 0
"""
_NOTE_REDACTION: Final = "UPDATE jobs SET redacted_at = clock_timestamp() WHERE uid = $1"
# The new versions reject what a follower has read before, and it passes over what it would read again.
_OVERTAKE: Final = f"""
UPDATE kept_logs AS l
SET version = l.version + 1, stored_bytes = 0, passes_over = (l.state = '{KeptLogState.FOLLOWING}')
FROM (SELECT * FROM kept_logs WHERE job_uid = $1 ORDER BY {_KEY} FOR UPDATE) AS b
WHERE ({_KEY.of("l")}) = ({_KEY.of("b")})
RETURNING b.namespace, b.job_uid, 0::bigint, -b.stored_bytes
"""  # noqa: S608  constants
_REMOVE_CHUNKS: Final = f"""
WITH gone AS (DELETE FROM log_chunks WHERE job_uid = $1 RETURNING object_name) {_NOTE}
"""  # noqa: S608  constants
_MARK_GAPS: Final = f"""
INSERT INTO log_chunks ({_KEY}, start, length, first_line, lines, first_at, last_at, stored_bytes, gap)
SELECT {_KEY}, 0, 0, 0, 0, first_at, last_at, 0, '{GapReason.REDACTED}' FROM kept_logs
WHERE job_uid = $1 AND text_bytes > 0
"""  # noqa: S608  constants
_NAMESPACES: Final = "SELECT namespace FROM kept_log_totals WHERE job_uid = $1"
_RECOUNT: Final = """
UPDATE kept_log_totals AS t
SET text_bytes = COALESCE(j.text_bytes, 0), stored_bytes = COALESCE(j.stored_bytes, 0)
FROM kept_log_totals AS n LEFT JOIN (
    SELECT namespace, sum(text_bytes) AS text_bytes, sum(stored_bytes) AS stored_bytes
    FROM kept_log_totals WHERE job_uid <> $1 GROUP BY namespace
) AS j USING (namespace)
WHERE n.job_uid = $1 AND t.namespace = n.namespace AND t.job_uid = $1
"""
_DUE: Final = "SELECT object_name FROM log_deletions ORDER BY object_name LIMIT $1"
_DONE: Final = "DELETE FROM log_deletions WHERE object_name = ANY($1::text[])"
_KNOWN: Final = f"""
SELECT c.object_name FROM {_CHUNK.rows("w")} JOIN log_chunks AS c
    ON ({_KEY.of("c")}, c.start) = ({_KEY.of("w")}, w.start) AND c.object_name = w.object_name
"""  # noqa: S608  constants


async def redact(connection: Connection, job_uid: UUID, now: datetime) -> int:
    """Remove what is kept of the logs of a job, in the transaction of the caller, and return how many logs had text.

    The caller has locked the row of the job. What its containers print from now on is kept: a follower passes over what
    they have printed before.
    """
    await connection.execute(_NOTE_REDACTION, job_uid)
    sizes = [LogSize(*row) for row in await connection.fetch(_OVERTAKE, job_uid)]
    await connection.execute(_REMOVE_CHUNKS, job_uid, now)
    await connection.execute(_MARK_GAPS, job_uid)
    if sizes:
        await add_to_totals(connection, sizes)
    return sum(size.stored_bytes < 0 for size in sizes)


async def namespaces(db: Database) -> list[str]:
    """Return the namespaces with kept logs."""
    async with db.read() as connection:
        return [row["namespace"] for row in await connection.fetch(_NAMESPACES, ALL_JOBS)]


async def remove_expired(db: Database, namespace: str, before: datetime, now: datetime, limit: int) -> int:
    """Remove at most `limit` logs that ended before a time, and return how many there were.

    Those of pinned jobs stay.
    """
    async with db.begin() as connection:
        rows = await connection.fetch(_REMOVE_EXPIRED, before, now, namespace, limit)
        sizes = [LogSize(*row) for row in rows]
        if sizes:
            await add_to_totals(connection, sizes)
            await connection.execute(_FORGET_TOTALS, list({size.job_uid for size in sizes}))
    return len(sizes)


async def recount(db: Database) -> None:
    """Set the totals of namespaces to those of their jobs: the totals of a job are deleted with its record."""
    async with db.begin() as connection:
        await connection.execute(_RECOUNT, ALL_JOBS)


async def due_deletions(db: Database, limit: int) -> list[str]:
    """Return the names of objects that no chunk has any more."""
    async with db.read() as connection:
        return [row["object_name"] for row in await connection.fetch(_DUE, limit)]


async def note_deleted(db: Database, names: Sequence[str]) -> None:
    async with db.read() as connection:
        await connection.execute(_DONE, list(names))


async def known_objects(db: Database, objects: Sequence[tuple[LogKey, int, str]]) -> set[str]:
    """Return the names of those objects, each given with its log and offset, that are chunks."""
    if not objects:
        return set()
    rows = [(*key, start, name) for key, start, name in objects]
    async with db.read() as connection:
        return {row["object_name"] for row in await connection.fetch(_KNOWN, *Columns.arguments(rows))}
