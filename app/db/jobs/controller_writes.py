"""Decisions of the controller as rows: job, replicas, ended attempts, conditions, history, scale
records, names and the feed.

lock the jobs in order of uid ─▶ drop what has moved ─▶ one bulk statement a table
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.db import codec
from app.db.engine import Connection
from app.db.feed import changes
from app.db.jobs import pod_room
from app.domain.plan import Rank
from app.domain.reconcile.values import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWrite:
    """A decision and the versions it was made on.

    `removed` are ranks whose rows go. `replaces_conditions` may be False where they are as stored. `pod_names` names
    pods of changed replicas. `observed_at` is when the cluster last showed a change of this job.
    """

    uid: UUID
    generation: int
    status_version: int
    intent_version: int
    decision: Decision
    observed_at: datetime | None = None
    removed: tuple[Rank, ...] = ()
    replaces_conditions: bool = True
    pod_names: Mapping[Rank, str] = field(default_factory=dict)


_LOCK = """
SELECT uid, namespace, generation, status_version, intent_version, history_count, phase, gone_at
FROM jobs WHERE uid = ANY($1::uuid[]) ORDER BY uid FOR UPDATE
"""
_ACKNOWLEDGE = """
UPDATE jobs AS j SET intent_at = NULL, wake_at = w.wake_at
FROM unnest($1::uuid[], $2::timestamptz[]) AS w(uid, wake_at)
WHERE j.uid = w.uid AND (j.intent_at IS NOT NULL OR j.wake_at IS DISTINCT FROM w.wake_at)
"""
_JOBS = """
UPDATE jobs AS j
SET phase = w.phase, reason = w.reason, message = w.message, observed_generation = w.observed_generation,
    started_at = w.started_at, finished_at = w.finished_at, gone_at = w.gone_at, quiet = w.quiet,
    status = w.status::jsonb, wake_at = w.wake_at, history_count = j.history_count + w.lines, intent_at = NULL,
    version = j.version + 1, status_version = j.status_version + 1
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[], $9::bool[], $10::text[], $11::timestamptz[], $12::int[])
  AS w(uid, phase, reason, message, observed_generation, started_at, finished_at, gone_at, quiet,
       status, wake_at, lines)
WHERE j.uid = w.uid
RETURNING j.namespace, j.uid, j.version
"""
_ATTEMPT = ", ".join(codec.ATTEMPT_COLUMNS)
_REPLACE_ATTEMPT = ", ".join(f"{name} = excluded.{name}" for name in codec.ATTEMPT_COLUMNS)
_SELECT_ATTEMPT = ", ".join(codec.ATTEMPT_COLUMNS[:-1]) + ", containers::jsonb"
_ATTEMPT_TYPES = """$5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
$13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::int[], $17::text[], $18::text[], $19::text[]"""
_REPLICA = "pod_name, restarts, disruptions, retry_at, settled, leaving"
_REPLICAS = f"""
INSERT INTO replicas (job_uid, task, rank, attempt, {_ATTEMPT}, {_REPLICA})
SELECT job_uid, task, rank, attempt, {_SELECT_ATTEMPT}, {_REPLICA}
FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[], {_ATTEMPT_TYPES},
            $20::text[], $21::int[], $22::int[], $23::timestamptz[], $24::bool[], $25::bool[])
  AS w(job_uid, task, rank, attempt, {_ATTEMPT}, {_REPLICA})
ON CONFLICT (job_uid, task, rank) DO UPDATE
SET attempt = excluded.attempt, {_REPLACE_ATTEMPT}, pod_name = COALESCE(excluded.pod_name, replicas.pod_name),
    restarts = excluded.restarts, disruptions = excluded.disruptions, retry_at = excluded.retry_at,
    settled = excluded.settled, leaving = excluded.leaving
"""  # noqa: S608  the columns are ours
_REMOVED = """
DELETE FROM replicas AS r USING unnest($1::uuid[], $2::text[], $3::int[]) AS w(job_uid, task, rank)
WHERE (r.job_uid, r.task, r.rank) = (w.job_uid, w.task, w.rank)
"""
_ATTEMPTS = f"""
INSERT INTO attempts (job_uid, task, rank, attempt, {_ATTEMPT})
SELECT job_uid, task, rank, attempt, {_SELECT_ATTEMPT}
FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[], {_ATTEMPT_TYPES})
  AS w(job_uid, task, rank, attempt, {_ATTEMPT})
ON CONFLICT (job_uid, task, rank, attempt) DO UPDATE SET {_REPLACE_ATTEMPT}
"""  # noqa: S608  the columns are ours
_HISTORY = """
INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor, task, rank, attempt)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
                     $8::text[], $9::int[], $10::int[])
"""
_FORGET_CONDITIONS = "DELETE FROM conditions WHERE job_uid = ANY($1::uuid[])"
_CONDITIONS = f"""
INSERT INTO conditions (job_uid, position, {", ".join(codec.CONDITION_COLUMNS)})
SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                     $8::bigint[])
"""  # noqa: S608  the columns are ours
_SETTLED = """
UPDATE scale_records AS s SET settled_at = w.settled_at, outcome = w.outcome, message = w.message
FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[])
  AS w(job_uid, seq, settled_at, outcome, message)
WHERE (s.job_uid, s.seq) = (w.job_uid, w.seq)
"""
_RELEASE_NAMES = "UPDATE names SET released = true WHERE job_uid = ANY($1::uuid[]) AND NOT released"
_FORGET_NAMES = "DELETE FROM names WHERE job_uid = ANY($1::uuid[])"

# Above this many rows a statement, Postgres takes longer for each of them.
_ROWS_A_STATEMENT = 1000


async def store(connection: Connection, writes: Sequence[JobWrite]) -> list[UUID]:
    """Write what still applies and return the uids of the rest. The caller has passed the fence."""
    locked = {row["uid"]: row for row in await connection.fetch(_LOCK, [write.uid for write in writes])}
    current = [write for write in writes if _applies(write, locked.get(write.uid))]
    dirty = [write for write in current if write.decision.dirty]
    # Nothing that anybody can read changes in these: no version, no feed row.
    clean = [(write.uid, write.decision.wake_at) for write in current if not write.decision.dirty]
    if clean:
        await connection.execute(_ACKNOWLEDGE, *codec.columns(clean))
    if dirty:
        await _store_jobs(connection, dirty)
        await _store_replicas(connection, dirty)
        await _store_conditions(connection, dirty)
        await _bulk(connection, _HISTORY, _history_rows(dirty, locked))
        await _bulk(connection, _SETTLED, _settled_rows(dirty))
        await _store_names(connection, dirty, locked)
    accepted = {write.uid for write in current}
    return [write.uid for write in writes if write.uid not in accepted]


def _applies(write: JobWrite, row: Any) -> bool:
    return row is not None and (row["generation"], row["status_version"], row["intent_version"]) == (
        write.generation,
        write.status_version,
        write.intent_version,
    )


async def _store_jobs(connection: Connection, writes: Sequence[JobWrite]) -> None:
    written = await connection.fetch(_JOBS, *codec.columns([_job_row(write) for write in writes]))
    await changes.announce(connection, changes.STATUS, [tuple(row) for row in written])


def _job_row(write: JobWrite) -> tuple[Any, ...]:
    status = write.decision.status
    document = codec.status_document(status)
    if write.observed_at is not None:
        document["observed_at"] = codec.dump(write.observed_at)
    return (
        write.uid,
        status.phase,
        status.reason,
        status.message,
        status.observed_generation,
        status.started_at,
        status.finished_at,
        status.gone_at,
        status.quiet,
        codec.text_of(document),
        write.decision.wake_at,
        len(write.decision.history),
    )


async def _store_replicas(connection: Connection, writes: Sequence[JobWrite]) -> None:
    changed = [_replica_row(write, replica) for write in writes for replica in write.decision.changed]
    ended = [
        (write.uid, *key, attempt.number, *codec.attempt_values(attempt))
        for write in writes
        for key, attempt in write.decision.ended
    ]
    removed = [(write.uid, *key) for write in writes for key in write.removed]
    await _bulk(connection, _REMOVED, removed)
    await _bulk(connection, _REPLICAS, changed)
    await _bulk(connection, _ATTEMPTS, ended)


def _replica_row(write: JobWrite, replica: Any) -> tuple[Any, ...]:
    return (
        write.uid,
        *replica.key,
        replica.attempt.number,
        *codec.attempt_values(replica.attempt),
        write.pod_names.get(replica.key),
        replica.restarts,
        replica.disruptions,
        replica.retry_at,
        replica.settled,
        replica.leaving,
    )


async def _store_conditions(connection: Connection, writes: Sequence[JobWrite]) -> None:
    replaced = [write for write in writes if write.replaces_conditions]
    if not replaced:
        return
    await connection.execute(_FORGET_CONDITIONS, [write.uid for write in replaced])
    rows = [
        (write.uid, position, *codec.condition_values(condition))
        for write in replaced
        for position, condition in enumerate(write.decision.status.conditions)
    ]
    await _bulk(connection, _CONDITIONS, rows)


def _history_rows(writes: Sequence[JobWrite], locked: Mapping[UUID, Any]) -> list[tuple[Any, ...]]:
    return [
        (write.uid, seq, entry.at, entry.phase, entry.reason, entry.message, entry.actor)
        + ((entry.key.task, entry.key.rank) if entry.key else (None, None))
        + (entry.attempt,)
        for write in writes
        for seq, entry in enumerate(write.decision.history, locked[write.uid]["history_count"] + 1)
    ]


def _settled_rows(writes: Sequence[JobWrite]) -> list[tuple[Any, ...]]:
    return [
        (write.uid, record.seq, record.settled_at, record.outcome, record.message)
        for write in writes
        for record in write.decision.scaled
    ]


async def _store_names(connection: Connection, writes: Sequence[JobWrite], locked: Mapping[UUID, Any]) -> None:
    """A job that ends frees its names for a successor; one whose objects are gone forgets them."""
    ended = [
        w.uid
        for w in writes
        if w.decision.status.phase.is_terminal and w.decision.status.phase != locked[w.uid]["phase"]
    ]
    gone = [w.uid for w in writes if w.decision.status.gone_at is not None and locked[w.uid]["gone_at"] is None]
    if ended:
        await connection.execute(_RELEASE_NAMES, ended)
        await pod_room.give_back(connection, ended)
    if gone:
        await connection.execute(_FORGET_NAMES, gone)


async def _bulk(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        await connection.execute(statement, *codec.columns(rows[start : start + _ROWS_A_STATEMENT]))
