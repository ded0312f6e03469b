"""The index of whole logs: what is kept of each, and in which objects of the store. API processes read it.

A chunk and the position after it are written in one transaction, by the version of the log that was read before. So of
two processes that follow a log one writes each chunk, and the other one reads the log again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.db.postgres import codec
from app.db.postgres.columns import columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import KeptChunk, KeptLog, KeptLogState
from app.domain.kept_logs.runs import kept_since
from app.domain.plan import Rank
from app.models.kept_logs import kept_log_totals, kept_logs, log_chunks

ALL_JOBS: Final = UUID(int=0)
"""Stands for all jobs of a namespace in the table of totals."""

_LOG: Final = record_columns(kept_logs, KeptLog)
_CHUNK: Final = record_columns(log_chunks, KeptChunk)
_KEY: Final = columns(log_chunks, *LogKey._fields)
_ROW: Final = _KEY + _CHUNK
_IS_LOG: Final = " AND ".join(f"{name} = ${number}" for number, name in enumerate(LogKey._fields, start=1))
_OF_ATTEMPT: Final = "job_uid = $1 AND task = $2 AND rank = $3 AND attempt = $4"

_OPENED: Final = columns(kept_logs, *LogKey._fields, "namespace", "state", "updated_at", "passes_over")
_OPEN: Final = f"""
INSERT INTO kept_logs ({_OPENED}) SELECT {_OPENED} FROM {_OPENED.rows("w")} ON CONFLICT DO NOTHING
"""  # noqa: S608  constants
# A redaction has locked the row until it has changed all logs of the job. So it has seen this one, or is seen here.
_REDACTED: Final = "SELECT redacted_at FROM jobs WHERE uid = $1 FOR KEY SHARE"
_READ: Final = f"SELECT {_LOG} FROM kept_logs WHERE {_IS_LOG}"  # noqa: S608  constants
_READ_ATTEMPT: Final = f"""
SELECT {_LOG.without("position")} FROM kept_logs WHERE {_OF_ATTEMPT} ORDER BY container, run
"""  # noqa: S608  constants
# Without the position, which only its follower needs.
_WRITTEN: Final = _KEY + columns(
    kept_logs,
    *("version", "text_bytes", "lines", "stored_bytes", "first_at", "last_at"),
    *("position", "state", "note", "updated_at"),
)
_WRITE: Final = f"""
UPDATE kept_logs AS k
SET version = k.version + 1, text_bytes = k.text_bytes + w.text_bytes, lines = k.lines + w.lines,
    stored_bytes = k.stored_bytes + w.stored_bytes,
    first_at = LEAST(k.first_at, w.first_at), last_at = GREATEST(k.last_at, w.last_at),
    position = COALESCE(w.position, k.position), passes_over = false, state = w.state, note = COALESCE(w.note, k.note),
    updated_at = w.updated_at,
    finished_at = CASE WHEN w.state = '{KeptLogState.FOLLOWING}' THEN NULL ELSE w.updated_at END
FROM {_WRITTEN.rows("w")}
WHERE ({_KEY.of("k")}) = ({_KEY.of("w")}) AND k.version = w.version AND k.state = '{KeptLogState.FOLLOWING}'
RETURNING {_LOG.of("k")}
"""  # noqa: S608  constants
_WRITE_CHUNKS: Final = f"""
INSERT INTO log_chunks ({_ROW}) SELECT {_ROW} FROM {_ROW.rows("w")}
ON CONFLICT DO NOTHING
"""  # noqa: S608  constants
_NOTE_REFUSED: Final = """
INSERT INTO log_deletions (object_name, requested_at) SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING
"""
_TOTAL: Final = columns(kept_log_totals, "namespace", "job_uid", "text_bytes", "stored_bytes")
# In the order of their keys, so that no two transactions wait for each other.
_ADD_TO_TOTALS: Final = f"""
INSERT INTO kept_log_totals AS t ({_TOTAL}) SELECT {_TOTAL} FROM {_TOTAL.rows("w")} ORDER BY namespace, job_uid
ON CONFLICT (namespace, job_uid)
DO UPDATE SET text_bytes = t.text_bytes + excluded.text_bytes, stored_bytes = t.stored_bytes + excluded.stored_bytes
RETURNING job_uid, text_bytes
"""  # noqa: S608  constants
_READ_TOTALS: Final = (
    "SELECT job_uid, text_bytes FROM kept_log_totals WHERE namespace = $1 AND job_uid = ANY($2::uuid[])"
)
_IN_BYTES: Final = f"""
SELECT {_CHUNK} FROM log_chunks
WHERE {_IS_LOG} AND (start + length > $7 OR (start = $7 AND length = 0)) AND start < $8
  AND start >= (SELECT COALESCE(max(start), 0) FROM log_chunks WHERE {_IS_LOG} AND start <= $7)
ORDER BY start, length LIMIT $9
"""  # noqa: S608  constants
_LAST: Final = f"""
SELECT {_CHUNK} FROM log_chunks WHERE {_IS_LOG} AND start < $7 ORDER BY start DESC, length DESC LIMIT $8
"""  # noqa: S608  constants
_SINCE: Final = f"""
SELECT {_CHUNK} FROM log_chunks WHERE {_IS_LOG} AND (last_at IS NULL OR last_at >= $7) ORDER BY start, length LIMIT 1
"""  # noqa: S608  constants
_WITH_LINE: Final = f"""
SELECT {_CHUNK} FROM log_chunks WHERE {_IS_LOG} AND first_line + lines > $7 ORDER BY start, length LIMIT 1
"""  # noqa: S608  constants
_READ_JOB: Final = f"""
SELECT {_LOG.without("position").of("k")}, (
    SELECT count(*) FROM log_chunks AS c WHERE ({_KEY.of("c")}) = ({_KEY.of("k")}) AND gap IS NOT NULL
) AS gaps
FROM kept_logs AS k
WHERE job_uid = $1 AND ($2::text IS NULL OR task = $2) AND ($3::int IS NULL OR rank = $3)
ORDER BY {_KEY} OFFSET $4 LIMIT $5
"""  # noqa: S608  constants
_COUNT_GAPS: Final = f"SELECT count(*) FROM log_chunks WHERE {_IS_LOG} AND gap IS NOT NULL"  # noqa: S608  constants

_IS_POD_OF: Final = f"""
SELECT EXISTS (SELECT FROM jobs WHERE uid = $1 AND namespace = $6) AND (
    EXISTS (SELECT FROM replicas WHERE {_OF_ATTEMPT} AND pod_uid = $5)
    OR EXISTS (SELECT FROM attempts WHERE {_OF_ATTEMPT} AND pod_uid = $5)
)
"""  # noqa: S608  constants
_FOLLOWING: Final = f"""
SELECT {_LOG.without("position")} FROM kept_logs WHERE finished_at IS NULL AND ({_KEY}) > ($1, $2, $3, $4, $5, $6)
ORDER BY {_KEY} LIMIT $7
"""  # noqa: S608  constants
_FIRST_KEY: Final = LogKey(ALL_JOBS, "", 0, 0, "", 0)

_LONGEST: Final = 2**62  # more bytes and lines than a log has


class Totals(NamedTuple):
    """How many bytes of text are kept of a job, and of its whole namespace."""

    job: int
    namespace: int


class CountedLog(NamedTuple):
    """A kept log, and how many gaps it has."""

    log: KeptLog
    gaps: int


class LogSize(NamedTuple):
    """A change of how much is kept of a job: bytes of text, and bytes in the store."""

    namespace: str
    job_uid: UUID
    text_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWrite:
    """A step of a log: chunks and gaps that follow what is kept, the position after them, and its state.

    `note` is the reason of a cut.
    """

    chunks: Sequence[KeptChunk] = ()
    position: bytes | None = None
    state: KeptLogState = KeptLogState.FOLLOWING
    note: str | None = None


async def is_pod_of(db: Database, namespace: str, pod_uid: str, key: LogKey) -> bool:
    """Return whether the pod is on record as that of the attempt. Its labels alone prove nothing."""
    async with db.read() as connection:
        return bool(await connection.fetchval(_IS_POD_OF, *key[:4], pod_uid, namespace))


async def open_log(
    db: Database, key: LogKey, namespace: str, now: datetime, *, started_at: datetime | None = None
) -> KeptLog:
    """Return what is kept of a log. Begin it if nothing is; its run has started at `started_at`, if that is known."""
    if (known := await read(db, key)) is not None:
        return known
    async with db.begin() as connection:
        redacted_at = await connection.fetchval(_REDACTED, key.job_uid)
        passes_over = kept_since(redacted_at, started_at) is not None
        values = (*key, namespace, KeptLogState.FOLLOWING, now, passes_over)
        await connection.execute(_OPEN, *_OPENED.arguments([values]))
        return _log(await connection.fetchrow(_READ, *key))


async def read(db: Database, key: LogKey) -> KeptLog | None:
    """Return what is kept of a log; None if nothing is."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ, *key)
    return None if row is None else _log(row)


async def of_attempt(db: Database, job_uid: UUID, replica: Rank, attempt: int) -> list[KeptLog]:
    """Return the kept logs of an attempt, by container and run, without their positions."""
    async with db.read() as connection:
        rows = await connection.fetch(_READ_ATTEMPT, job_uid, *replica, attempt)
    return [_log(row) for row in rows]


async def of_job(
    db: Database, job_uid: UUID, task: str | None, rank: int | None, *, start: int, limit: int
) -> list[CountedLog]:
    """Return kept logs of a job, of one task or rank if they are given, in the order of their keys."""
    async with db.read() as connection:
        rows = await connection.fetch(_READ_JOB, job_uid, task, rank, start, limit)
    shown = _LOG.without("position").names
    return [CountedLog(_log({name: row[name] for name in shown}), row["gaps"]) for row in rows]


async def write(db: Database, log: KeptLog, step: LogWrite, now: datetime) -> tuple[KeptLog, Totals] | None:
    """Add a step to a log, and return the log and the totals after it.

    Return None, and write nothing, if another process has written to the log since it was read, or it is final. The
    objects of the refused chunks are noted for deletion: after a redaction, they can have what it has removed.
    """
    added = _sums(step.chunks)
    async with db.begin() as connection:
        values = (*log.key, log.version, *added, step.position, step.state, step.note, now)
        row = await connection.fetchrow(_WRITE, *_WRITTEN.arguments([values]))
        if row is None:
            refused = [chunk.object_name for chunk in step.chunks if chunk.object_name is not None]
            await connection.execute(_NOTE_REFUSED, refused, now)
            return None
        if step.chunks:
            chunks = [(*log.key, *_CHUNK.values(chunk)) for chunk in step.chunks]
            await connection.execute(_WRITE_CHUNKS, *_ROW.arguments(chunks))
        found = await add_to_totals(
            connection, [LogSize(log.namespace, log.job_uid, added.text_bytes, added.stored_bytes)]
        )
        return _log(row), Totals(found[log.job_uid], found[ALL_JOBS])


async def following(db: Database, after: LogKey | None, limit: int) -> list[KeptLog]:
    """Return logs of which more is expected, in the order of their keys, without their positions."""
    async with db.read() as connection:
        return [_log(row) for row in await connection.fetch(_FOLLOWING, *(after or _FIRST_KEY), limit)]


async def totals(db: Database, namespace: str, job_uid: UUID) -> Totals:
    """Return how much is kept of a job and of its namespace."""
    async with db.read() as connection:
        found = dict(await connection.fetch(_READ_TOTALS, namespace, [job_uid, ALL_JOBS]))
    return Totals(found.get(job_uid, 0), found.get(ALL_JOBS, 0))


async def chunks_in_bytes(
    db: Database, key: LogKey, begin: int = 0, end: int = _LONGEST, *, limit: int = 1000
) -> list[KeptChunk]:
    """Return the chunks with bytes from `begin` on and before `end`, and the gaps there, in order.

    A gap comes before the chunk with the same start. One directly at `begin` is part of the result.
    """
    async with db.read() as connection:
        return [_chunk(row) for row in await connection.fetch(_IN_BYTES, *key, begin, end, limit)]


async def chunks_before(db: Database, key: LogKey, end: int = _LONGEST, *, limit: int = 1000) -> list[KeptChunk]:
    """Return the chunks and gaps that start before `end`, the last one first."""
    async with db.read() as connection:
        return [_chunk(row) for row in await connection.fetch(_LAST, *key, end, limit)]


async def first_since(db: Database, key: LogKey, since: datetime) -> KeptChunk | None:
    """Return the first chunk, or gap, with a line of this time or later; None if there is none."""
    return await _first(db, _SINCE, key, since)


async def first_with_line(db: Database, key: LogKey, line: int) -> KeptChunk | None:
    """Return the first chunk in which this line, or a later one, starts. Lines count from 0."""
    return await _first(db, _WITH_LINE, key, line)


async def _first(db: Database, statement: str, key: LogKey, bound: datetime | int) -> KeptChunk | None:
    async with db.read() as connection:
        row = await connection.fetchrow(statement, *key, bound)
    return None if row is None else _chunk(row)


async def count_gaps(db: Database, key: LogKey) -> int:
    """Return how many gaps a kept log has."""
    async with db.read() as connection:
        return int(await connection.fetchval(_COUNT_GAPS, *key))


class _Sums(NamedTuple):
    text_bytes: int
    lines: int
    stored_bytes: int
    first_at: datetime | None
    last_at: datetime | None


def _sums(chunks: Sequence[KeptChunk]) -> _Sums:
    texts = [chunk for chunk in chunks if chunk.gap is None]
    return _Sums(
        text_bytes=sum(chunk.length for chunk in texts),
        lines=sum(chunk.lines for chunk in texts),
        stored_bytes=sum(chunk.stored_bytes for chunk in texts),
        first_at=min((chunk.first_at for chunk in texts if chunk.first_at), default=None),
        last_at=max((chunk.last_at for chunk in texts if chunk.last_at), default=None),
    )


async def add_to_totals(connection: Connection, sizes: Sequence[LogSize]) -> Mapping[UUID, int]:
    """Add bytes to the totals of jobs and of their namespaces, and return the bytes of text of each job.

    The last statement of a transaction, because many logs share these rows.
    """
    sums: dict[tuple[str, UUID], list[int]] = {}
    for namespace, job_uid, text, stored in sizes:
        for key in ((namespace, job_uid), (namespace, ALL_JOBS)):
            total = sums.setdefault(key, [0, 0])
            total[0] += text
            total[1] += stored
    rows = [(*key, *total) for key, total in sums.items()]
    return dict(await connection.fetch(_ADD_TO_TOTALS, *_TOTAL.arguments(rows)))


def _log(row: Any) -> KeptLog:
    return codec.load(dict(row), KeptLog)


def _chunk(row: Any) -> KeptChunk:
    return codec.load(_CHUNK.read(row), KeptChunk)
