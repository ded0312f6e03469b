"""Reads of the controller of SampleSets and SampleJobs, and `persist`, through which alone it writes its decisions.

A request of a client increases `intent_version` and sets `intent_at`. The write of a decision on that version sets
`intent_at` to null. A notification on `notifications.SAMPLE_INTENT` makes the controller query at once. It may be lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Column, Integer

from app.db.feed import changes
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.columns import Columns, columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import in_namespaces, namespace_arguments
from app.db.samples.rows import COLUMNS, HOLDER, SAMPLE_HISTORY, STATUS, SampleRow, record_document, sample_row
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.cache.reconcile.values import SampleEvent
from app.domain.cache.vocabulary import SampleJobPhase
from app.domain.kinds.sample_status import updated_status
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import TERMINAL_PHASES
from app.models.jobs import JOBS_WITH_CLAIMS
from app.models.samples import sample_events, samples


class LiveSample(NamedTuple):
    uid: UUID
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MountingJob:
    """A job whose replicas run or may yet run, and whose manifest names a PersistentVolumeClaim."""

    uid: UUID
    name: str
    kind: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWrite:
    """The decision of a reconcile, and the versions that it is based on.

    `observed_at` and `cache_observed_at` of None keep the stored times. `gone`: no object of the sample is left.
    """

    uid: UUID
    intent_version: int
    generation: int
    phase: str
    record: Any
    reason: str = ""
    message: str = ""
    events: Sequence[SampleEvent] = ()
    wake_at: datetime | None = None
    observed_at: datetime | None = None
    cache_observed_at: datetime | None = None
    gone: bool = False


# A SampleJob that has succeeded never changes again, because it cannot be edited.
_UNFINISHED: Final = f"gone_at IS NULL AND phase <> '{SampleJobPhase.SUCCEEDED}'"
_LIVE: Final = f"""
SELECT uid, namespace FROM samples WHERE {_UNFINISHED} AND {in_namespaces(1)}
"""  # noqa: S608  constants
_PENDING_INTENTS: Final = f"""
SELECT uid, namespace FROM samples WHERE intent_at IS NOT NULL AND {in_namespaces(2)} ORDER BY intent_at LIMIT $1
"""  # noqa: S608  constants
_DUE: Final = f"""
SELECT uid, namespace FROM samples WHERE wake_at <= $1 AND gone_at IS NULL AND {in_namespaces(3)}
ORDER BY wake_at LIMIT $2
"""  # noqa: S608  constants
_LOAD: Final = f"""
SELECT {COLUMNS} FROM samples AS s
WHERE s.uid = $1 AND s.gone_at IS NULL AND {in_namespaces(2, "s.namespace")}
"""  # noqa: S608  constants
_OF_SET: Final = f"""
SELECT uid FROM samples WHERE kind = $1 AND namespace = $2 AND set_name = $3 AND {_UNFINISHED} ORDER BY created_at
"""  # noqa: S608  constants
_MOUNTING: Final = f"""
SELECT uid, name, kind, phase FROM jobs
WHERE namespace = $1 AND {JOBS_WITH_CLAIMS} AND $2 = ANY(claim_names) AND deleted_at IS NULL
  AND (phase <> ALL($3::text[]) OR status ? 'still_running')
ORDER BY created_at DESC, uid DESC LIMIT $4
"""  # noqa: S608  constants
_LOCK: Final = f"SELECT {COLUMNS} FROM samples AS s WHERE s.uid = $1 AND s.gone_at IS NULL FOR UPDATE"  # noqa: S608
_DECISION: Final = columns(samples, "phase", "reason", "message", "record", "wake_at", "gone_at")
_DECIDED: Final = _DECISION + STATUS + columns(samples, "observed_generation")
_OBSERVED: Final = columns(samples, "observed_at", "cache_observed_at")
_COUNTS: Final = Columns(Column(name, Integer) for name in ("changes", "lines", "events"))
_WRITTEN: Final = columns(samples, "uid") + _DECIDED + _OBSERVED + _COUNTS
_WRITE: Final = f"""
UPDATE samples AS s
SET {_DECIDED.assignments("w")}, intent_at = NULL,
    observed_at = COALESCE(w.observed_at, s.observed_at),
    cache_observed_at = COALESCE(w.cache_observed_at, s.cache_observed_at), version = s.version + w.changes,
    history_count = s.history_count + w.lines, event_count = s.event_count + w.events
FROM {_WRITTEN.rows("w")}
WHERE s.uid = w.uid RETURNING {COLUMNS}
"""  # noqa: S608  constants
_EVENT: Final = record_columns(sample_events, SampleEvent)
_EVENTS: Final = f"""
INSERT INTO sample_events (uid, seq, at, {_EVENT})
SELECT $1, $2 + number, $3, {_EVENT} FROM {_EVENT.rows("w", first=4, number="number")}
"""  # noqa: S608  constants
_TERMINAL: Final = sorted(TERMINAL_PHASES)


async def read_live(db: Database, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveSample]:
    """Return all samples that are not gone, except SampleJobs that have succeeded."""
    async with db.read() as connection:
        return [LiveSample(*row) for row in await connection.fetch(_LIVE, *namespace_arguments(served))]


async def read_pending_intents(db: Database, limit: int, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveSample]:
    """Return at most `limit` samples whose intent no decision has observed, the longest waiting first."""
    async with db.read() as connection:
        return [
            LiveSample(*row) for row in await connection.fetch(_PENDING_INTENTS, limit, *namespace_arguments(served))
        ]


async def read_overdue(
    db: Database, now: datetime, limit: int, served: NamespaceSet = EVERY_NAMESPACE
) -> list[LiveSample]:
    """Return at most `limit` samples whose `wake_at` has passed, the longest overdue first."""
    async with db.read() as connection:
        return [LiveSample(*row) for row in await connection.fetch(_DUE, now, limit, *namespace_arguments(served))]


async def load(db: Database, uid: UUID, served: NamespaceSet = EVERY_NAMESPACE) -> SampleRow | None:
    """Return a sample, or None if it is gone, unknown, or in no served namespace."""
    async with db.read() as connection:
        row = await connection.fetchrow(_LOAD, uid, *namespace_arguments(served))
    return None if row is None else sample_row(row)


async def live_set(db: Database, namespace: str, name: str) -> SampleRow | None:
    """Return the SampleSet that holds the name, also while it is being deleted."""
    async with db.read() as connection:
        row = await connection.fetchrow(HOLDER, SAMPLE_SET.name, namespace, name)
    return None if row is None else sample_row(row)


async def jobs_of_set(db: Database, namespace: str, set_name: str) -> list[UUID]:
    """Return the SampleJobs of a set that a change of the set may affect, the oldest first."""
    async with db.read() as connection:
        return [row["uid"] for row in await connection.fetch(_OF_SET, SAMPLE_JOB.name, namespace, set_name)]


async def jobs_mounting(db: Database, namespace: str, claim: str, limit: int = 100) -> list[MountingJob]:
    """Return at most `limit` jobs of all kinds that mount the claim, the newest first.

    They are live, or have ended and replicas of theirs still run.
    """
    async with db.read() as connection:
        return [MountingJob(**row) for row in await connection.fetch(_MOUNTING, namespace, claim, _TERMINAL, limit)]


async def persist(db: Database, lease: Lease, done: SampleWrite, now: datetime) -> bool:
    """Write a decision. Return False, and write nothing, if the intent has changed since or the sample is gone.

    Only readable changes increase the version and have a feed entry. Only a change of phase, reason or message, and
    the removal, have a history row.

    Raises:
        LeaseLost: another controller holds the lease; nothing was written.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        locked = await connection.fetchrow(_LOCK, done.uid)
        if locked is None or locked["intent_version"] != done.intent_version:
            return False
        await _write(connection, sample_row(locked), done, now)
    return True


async def _write(connection: Connection, before: SampleRow, done: SampleWrite, now: datetime) -> None:
    is_line = done.gone or (before.phase, before.reason, before.message) != (done.phase, done.reason, done.message)
    status = updated_status(before.of_kind, before.status, done.record, done.generation, now)
    is_news = (
        is_line
        or bool(done.events)
        or (before.record, before.status, before.observed_generation) != (done.record, status, done.generation)
    )
    decision = (done.phase, done.reason, done.message, record_document(done.record))
    times = (None if done.gone else done.wake_at, now if done.gone else None)
    values = (
        done.uid,
        *_DECISION.encode((*decision, *times)),
        *STATUS.values(status),
        *(done.generation, done.observed_at, done.cache_observed_at),
        *(int(is_news), int(is_line), len(done.events)),
    )
    after = sample_row(await connection.fetchrow(_WRITE, *_WRITTEN.arguments([values])))
    if is_line:
        line = HistoryEntry(at=now, phase=after.phase, reason=after.reason, message=after.message)
        await connection.execute(SAMPLE_HISTORY.insert, *SAMPLE_HISTORY.arguments(after.uid, after.history_count, line))
    if done.events:
        rows = [_EVENT.values(event) for event in done.events]
        await connection.execute(_EVENTS, after.uid, before.event_count, now, *_EVENT.arguments(rows))
    if is_news:
        version = (after.namespace, after.uid, after.version)
        await changes.announce(connection, changes.STATUS, [version], resource=after.of_kind.resource)
