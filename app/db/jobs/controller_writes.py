"""Writes of the controller's decisions: jobs, replicas, ended attempts, conditions, history, scale records, names.

lock the jobs in order of uid ─▶ drop decisions on outdated versions ─▶ one bulk statement for each table
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Column, Integer

from app.db.feed import changes
from app.db.jobs.attempts import ATTEMPT, ATTEMPT_KEY
from app.db.jobs.replicas import REPLICA
from app.db.jobs.rows import CONDITION, JOB_HISTORY, STATUS, status_document
from app.db.postgres import codec
from app.db.postgres.columns import Columns, columns
from app.db.postgres.engine import Connection
from app.db.postgres.queries import any_length
from app.db.reservations import pod_room, room_waits
from app.db.usage import writes as usage_writes
from app.domain.plan import Rank
from app.domain.reconcile.values import Decision
from app.domain.status.records import Attempt, Replica
from app.domain.usage.groups import UsageGroup
from app.domain.usage.sums import NO_CHANGE
from app.models.jobs import conditions, jobs, scale_records
from app.models.replicas import replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWrite:
    """A decision and the versions that it is based on.

    `removed` are the ranks whose rows are deleted. `replaces_conditions` is False if the conditions are unchanged.
    `pod_names` are those of changed replicas. `group` is that of the job's usage. `observed_at` is the time of the last
    observed change in the cluster.
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
    group: UsageGroup | None = None


_UIDS: Final = any_length("$1::uuid[]")
# Every transaction locks jobs in order of uid, so that two of them cannot deadlock.
_LOCK: Final = f"""
SELECT uid, namespace, generation, status_version, intent_version, history_count, phase, gone_at
FROM jobs WHERE uid = ANY({_UIDS}) ORDER BY uid FOR UPDATE
"""  # noqa: S608  constants
# Rows that would not change are left alone: an update costs a row version.
_ACKNOWLEDGE = """
UPDATE jobs AS j SET intent_at = NULL, wake_at = w.wake_at
FROM unnest($1::uuid[], $2::timestamptz[]) AS w(uid, wake_at)
WHERE j.uid = w.uid AND (j.intent_at IS NOT NULL OR j.wake_at IS DISTINCT FROM w.wake_at)
"""
_JOB: Final = columns(jobs, "uid") + STATUS + columns(jobs, "status", "wake_at")
_LINES: Final = Columns([Column("lines", Integer)])  # how many rows of history are added
_JOBS: Final = f"""
UPDATE jobs AS j
SET {_JOB.without("uid").assignments("w")}, history_count = j.history_count + w.lines, intent_at = NULL,
    version = j.version + 1, status_version = j.status_version + 1
FROM {(_JOB + _LINES).rows("w")}
WHERE j.uid = w.uid
RETURNING j.namespace, j.uid, j.version
"""  # noqa: S608  constants
_POD_NAME: Final = columns(replicas, "pod_name")
_REPLICA: Final = ATTEMPT_KEY + ATTEMPT + REPLICA + _POD_NAME
# A write without a pod name keeps the stored one: a leaving rank has no name in the plan.
_REPLICAS: Final = f"""
INSERT INTO replicas ({_REPLICA}) SELECT {_REPLICA} FROM {_REPLICA.rows("w")}
ON CONFLICT (job_uid, task, rank) DO UPDATE
SET attempt = excluded.attempt, {(ATTEMPT + REPLICA).assignments("excluded")},
    pod_name = COALESCE(excluded.pod_name, replicas.pod_name)
"""  # noqa: S608  constants
_REMOVED = """
DELETE FROM replicas AS r USING unnest($1::uuid[], $2::text[], $3::int[]) AS w(job_uid, task, rank)
WHERE (r.job_uid, r.task, r.rank) = (w.job_uid, w.task, w.rank)
"""
_ATTEMPT: Final = ATTEMPT_KEY + ATTEMPT
# An ended attempt is written again when something about it changes, such as its evidence.
_ATTEMPTS: Final = f"""
INSERT INTO attempts ({_ATTEMPT}) SELECT {_ATTEMPT} FROM {_ATTEMPT.rows("w")}
ON CONFLICT (job_uid, task, rank, attempt) DO UPDATE SET {ATTEMPT.assignments("excluded")}
"""  # noqa: S608  constants
_FORGET_CONDITIONS: Final = f"DELETE FROM conditions WHERE job_uid = ANY({_UIDS})"  # noqa: S608  constants
_CONDITION: Final = columns(conditions, "job_uid", "position") + CONDITION
_CONDITIONS: Final = f"""
INSERT INTO conditions ({_CONDITION}) SELECT {_CONDITION} FROM {_CONDITION.rows("w")}
"""  # noqa: S608  constants
_OUTCOME: Final = columns(scale_records, "settled_at", "outcome", "message")
_SETTLED: Final = f"""
UPDATE scale_records AS s SET {_OUTCOME.assignments("w")}
FROM {(columns(scale_records, "job_uid", "seq") + _OUTCOME).rows("w")}
WHERE (s.job_uid, s.seq) = (w.job_uid, w.seq)
"""  # noqa: S608  constants
_RELEASE_NAMES: Final = f"UPDATE names SET released = true WHERE job_uid = ANY({_UIDS}) AND NOT released"  # noqa: S608
_FORGET_NAMES: Final = f"DELETE FROM names WHERE job_uid = ANY({_UIDS})"  # noqa: S608  constants

# With more rows in a statement, PostgreSQL takes longer for each row.
_ROWS_A_STATEMENT = 1000


async def store(connection: Connection, writes: Sequence[JobWrite]) -> list[UUID]:
    """Write the decisions on current versions, and return the uids of the others. The caller has checked the fence."""
    locked = {row["uid"]: row for row in await connection.fetch(_LOCK, [write.uid for write in writes])}
    current = [write for write in writes if _applies(write, locked.get(write.uid))]
    dirty = [write for write in current if write.decision.dirty]
    # These change nothing that clients can read, so they increase no version and have no feed entry.
    clean = [(write.uid, write.decision.wake_at) for write in current if not write.decision.dirty]
    if clean:
        await connection.execute(_ACKNOWLEDGE, *Columns.arguments(clean))
    if dirty:
        await _store_jobs(connection, dirty)
        await _store_replicas(connection, dirty)
        await _store_conditions(connection, dirty)
        await _bulk(connection, JOB_HISTORY.insert, _history_rows(dirty, locked))
        await _bulk(connection, _SETTLED, _outcome_rows(dirty))
        await _store_names(connection, dirty, locked)
        await _store_usage(connection, dirty, locked)
    accepted = {write.uid for write in current}
    return [write.uid for write in writes if write.uid not in accepted]


def _applies(write: JobWrite, row: Any) -> bool:
    return row is not None and (row["generation"], row["status_version"], row["intent_version"]) == (
        write.generation,
        write.status_version,
        write.intent_version,
    )


async def _store_jobs(connection: Connection, writes: Sequence[JobWrite]) -> None:
    written = await connection.fetch(_JOBS, *Columns.arguments([_job_row(write) for write in writes]))
    await changes.announce(connection, changes.STATUS, [tuple(row) for row in written])


def _job_row(write: JobWrite) -> tuple[Any, ...]:
    status = write.decision.status
    document = status_document(status)
    if write.observed_at is not None:
        document["observed_at"] = codec.dump(write.observed_at)
    return (
        write.uid,
        *STATUS.values(status),
        codec.text_of(document),
        write.decision.wake_at,
        len(write.decision.history),
    )


async def _store_replicas(connection: Connection, writes: Sequence[JobWrite]) -> None:
    changed = [_replica_row(write, replica) for write in writes for replica in write.decision.changed]
    ended = [_attempt_row(write, key, attempt) for write in writes for key, attempt in write.decision.ended]
    removed = [(write.uid, *key) for write in writes for key in write.removed]
    await _bulk(connection, _REMOVED, removed)
    await _bulk(connection, _REPLICAS, changed)
    await _bulk(connection, _ATTEMPTS, ended)


def _replica_row(write: JobWrite, replica: Replica) -> tuple[Any, ...]:
    return (
        *_attempt_row(write, replica.key, replica.attempt),
        *REPLICA.values(replica),
        write.pod_names.get(replica.key),
    )


def _attempt_row(write: JobWrite, key: Rank, attempt: Attempt) -> tuple[Any, ...]:
    return (write.uid, *key, attempt.number, *ATTEMPT.values(attempt))


async def _store_conditions(connection: Connection, writes: Sequence[JobWrite]) -> None:
    replaced = [write for write in writes if write.replaces_conditions]
    if not replaced:
        return
    await connection.execute(_FORGET_CONDITIONS, [write.uid for write in replaced])
    rows = [
        (write.uid, position, *CONDITION.values(condition))
        for write in replaced
        for position, condition in enumerate(write.decision.status.conditions)
    ]
    await _bulk(connection, _CONDITIONS, rows)


def _history_rows(writes: Sequence[JobWrite], locked: Mapping[UUID, Any]) -> list[tuple[Any, ...]]:
    return [
        JOB_HISTORY.values(write.uid, seq, entry)
        for write in writes
        # Every writer of history holds the lock on the job, so the numbers have no gaps and no duplicates.
        for seq, entry in enumerate(write.decision.history, locked[write.uid]["history_count"] + 1)
    ]


def _outcome_rows(writes: Sequence[JobWrite]) -> list[tuple[Any, ...]]:
    return [(write.uid, record.seq, *_OUTCOME.values(record)) for write in writes for record in write.decision.scaled]


async def _store_names(connection: Connection, writes: Sequence[JobWrite], locked: Mapping[UUID, Any]) -> None:
    """Release the names of jobs that end, and delete those of jobs whose objects are gone."""
    ended = [
        w.uid
        for w in writes
        # Only in the transition: the names are released and the pods subtracted once.
        if w.decision.status.phase.is_terminal and w.decision.status.phase != locked[w.uid]["phase"]
    ]
    gone = [w.uid for w in writes if w.decision.status.gone_at is not None and locked[w.uid]["gone_at"] is None]
    if ended:
        await connection.execute(_RELEASE_NAMES, ended)
        await pod_room.release(connection, ended)
        await room_waits.forget(connection, ended)
    if gone:
        await connection.execute(_FORGET_NAMES, gone)


async def _store_usage(connection: Connection, writes: Sequence[JobWrite], locked: Mapping[UUID, Any]) -> None:
    """Store the changes of usage. A namespace that was moved since the job was loaded has its new name here."""
    changes = [
        (w.uid, replace(w.group, namespace=locked[w.uid]["namespace"]), w.decision.usage)
        for w in writes
        if w.group is not None and w.decision.usage != NO_CHANGE
    ]
    if changes:
        await usage_writes.store(connection, changes)


async def _bulk(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        await connection.execute(statement, *Columns.arguments(rows[start : start + _ROWS_A_STATEMENT]))
