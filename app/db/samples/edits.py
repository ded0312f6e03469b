"""Requests of clients for SampleSets and SampleJobs: submission, edit, deletion. Each is one transaction.

A unique index decides between concurrent submissions: the second one waits for the commit of the first and then sees
its result. Each change increases `version` and `intent_version`, and writes a history row and a feed entry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.feed import changes
from app.db.objects import idempotency
from app.db.objects.history import DELETE_REQUESTED, EDITED
from app.db.objects.idempotency import KeyInFlight
from app.db.objects.resources import Check
from app.db.objects.submission import Answer, NameTaken, New
from app.db.postgres import codec
from app.db.postgres.columns import columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import DatabaseContended, KeyContended
from app.db.samples.rows import COLUMNS, HOLDER, ROW, SAMPLE_HISTORY, SampleRow, row_values, sample_row
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, NotFound, PreconditionFailed
from app.domain.kinds.changes import is_respecified
from app.domain.kinds.sample_status import DELETED, deleted_status
from app.domain.plan import Manifest
from app.domain.reservations.name_ranges import NameKind
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import Reason
from app.models.samples import samples


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEdit:
    """A new manifest and its precondition. `posted` is the new posted one; None leaves it."""

    manifest: Manifest
    posted: Manifest | None = None
    labels: Mapping[str, str]
    set_name: str
    actor: Actor
    at: datetime
    expected_version: int


_POSTED: Final = columns(samples, "posted_manifest")
_INSERTED: Final = ROW + _POSTED
# A name is free again when nothing is left of the sample that had it, so the unique index is partial.
_INSERT: Final = f"""
INSERT INTO samples ({_INSERTED}, intent_at) SELECT {_INSERTED}, created_at FROM {_INSERTED.rows("w")}
ON CONFLICT (kind, namespace, name) WHERE gone_at IS NULL DO NOTHING RETURNING true
"""  # noqa: S608  constants
_LOCK: Final = f"SELECT {COLUMNS} FROM samples AS s WHERE s.uid = $1 FOR UPDATE"  # noqa: S608  constants
_EDIT: Final = f"""
UPDATE samples AS s
SET manifest = $2, posted_manifest = COALESCE($7, posted_manifest), labels = $3, set_name = $4,
    generation = generation + $5::int, version = version + 1, intent_version = intent_version + 1, intent_at = $6,
    history_count = history_count + 1
WHERE uid = $1 RETURNING {COLUMNS}
"""  # noqa: S608  constants
_DELETE: Final = f"""
UPDATE samples AS s
SET delete_requested_at = $2::timestamptz, delete_requested_by = $3, delete_requested_by_id = $8,
    gone_at = CASE WHEN $4::bool THEN $2::timestamptz END,
    wake_at = CASE WHEN $4::bool THEN NULL ELSE wake_at END, version = version + 1, intent_version = intent_version + 1,
    intent_at = CASE WHEN $4::bool THEN NULL ELSE $2::timestamptz END, history_count = history_count + 1,
    reason = $5, conditions = $6, finished_at = $7
WHERE uid = $1 RETURNING {COLUMNS}
"""  # noqa: S608  constants
# The holder of a name may release it before it is read. After this many attempts, report contention.
_MAX_TRIES: Final = 5


async def submit(db: Database, news: Sequence[New[SampleRow]]) -> Mapping[int, Answer]:
    """Store all samples in one transaction, durably, or none. Return the refusals by position: none if all are stored.

    The idempotency key of the first sample stands for all. No two of the samples have the same name.

    Raises:
        NotStorable: a sample cannot be stored.
        DatabaseContended: another transaction holds a name for too long. None was stored.
    """
    try:
        async with db.begin() as connection:
            await _insert_all(connection, news)
    except _RolledBack as rolled_back:
        return rolled_back.refused
    except KeyContended:
        return {0: KeyInFlight()}
    reach(FaultPoint.SAMPLE_STORED)
    return {}


class _RolledBack(Exception):  # noqa: N818 - leaves a transaction to roll it back
    """Leaves the transaction, which rolls it back. `refused` has the reason of each refused object, by its index."""

    def __init__(self, refused: Mapping[int, Answer]) -> None:
        super().__init__()
        self.refused = refused


async def _insert_all(connection: Connection, news: Sequence[New[SampleRow]]) -> None:
    """Insert the samples in order of their names, so that two transactions cannot deadlock.

    The feed entries are in the order of the request.

    Raises:
        _RolledBack: a sample is refused.
    """
    first = news[0]
    if (key := first.idempotency) is not None:
        known = await idempotency.claim(connection, [(key, first.uid, first.row.created_at)])
        if key.id in known:
            answer = known[key.id]
            raise _RolledBack({0: KeyInFlight() if answer is None else answer.replay_or_conflict(key)})
    refused: dict[int, Answer] = {}
    for index in sorted(range(len(news)), key=lambda index: news[index].row.name):
        taken = await _insert(connection, news[index])
        if taken is not None:
            refused[index] = taken
    if refused:
        raise _RolledBack(refused)
    for new in news:
        row = new.row
        actor = Actor(row.created_by, row.created_by_id)
        await record_change(connection, row, changes.CREATED, (row.created_at, Reason.SUBMITTED, "", actor))


async def _insert(connection: Connection, new: New[SampleRow]) -> NameTaken | None:
    row = new.row
    for _ in range(_MAX_TRIES):
        if await connection.fetchval(_INSERT, *_INSERTED.arguments([(*row_values(row), *_POSTED.values(new))])):
            return None
        found = await connection.fetchrow(HOLDER, row.kind, row.namespace, row.name)
        if found is not None:
            holder = sample_row(found)
            leaving = holder.delete_requested_at is not None
            return NameTaken(
                kind=NameKind.JOB,
                name=row.name,
                holder_name=holder.name,
                holder_uid=holder.uid,
                holder_kind=holder.kind,
                leaving=leaving,
            )
    raise DatabaseContended("this name changes hands too fast")


async def edit(db: Database, uid: UUID, change: SampleEdit) -> SampleRow:
    """Replace the manifest.

    Raises:
        NotFound, PreconditionFailed: the sample does not exist, or its version is not the expected one.
        Conflict: the sample is being deleted or was deleted.
    """
    async with db.begin() as connection:
        row = await _lock(connection, uid)
        if change.expected_version != row.version:
            raise PreconditionFailed(f"the {row.kind} has changed since it was read: read it again and repeat the edit")
        refuse_leaving(row)
        respecified = int(is_respecified(row.manifest, change.manifest))
        values = (change.manifest, dict(change.labels), change.set_name, respecified, change.at)
        after = sample_row(await connection.fetchrow(_EDIT, uid, *values, change.posted))
        await record_change(connection, after, changes.EDITED, (change.at, EDITED, "", change.actor))
    reach(FaultPoint.SAMPLE_STORED)
    return after


def refuse_leaving(row: SampleRow) -> None:
    """Raise Conflict if the sample is being deleted or was deleted."""
    if row.delete_requested_at is not None:
        raise Conflict(f"the {row.kind} has been deleted", code="Deleted")


async def request_deletion(
    db: Database, uid: UUID, *, actor: Actor, at: datetime, reason: str = "", check: Check | None = None
) -> SampleRow:
    """Request the deletion of a sample. A repeated request changes nothing.

    A sample with objects in the cluster is gone when they are gone, and any other at once.

    Raises:
        NotFound: the sample does not exist. `check` may raise other errors for the locked sample.
    """
    async with db.begin() as connection:
        row = await _lock(connection, uid)
        if check is not None:
            check(row)
        if row.delete_requested_at is not None:
            return row
        after = await delete(connection, row, actor=actor, at=at, reason=reason)
    reach(FaultPoint.SAMPLE_STORED)
    return after


async def delete(connection: Connection, row: SampleRow, *, actor: Actor, at: datetime, reason: str) -> SampleRow:
    """Request the deletion of a locked sample that nobody has deleted yet."""
    after = sample_row(await connection.fetchrow(_DELETE, row.uid, at, actor.name, *_after_deletion(row, at), actor.id))
    await record_change(connection, after, changes.DELETED, (at, DELETE_REQUESTED, reason, actor))
    return after


def _after_deletion(row: SampleRow, at: datetime) -> tuple[Any, ...]:
    """Return whether the object is gone at once, and its reason, conditions and end.

    What has objects is reconciled until they are removed; nothing reconciles what has none.
    """
    kind, status, reason = row.of_kind, row.status, row.reason
    if not kind.has_objects:
        status = deleted_status(status, row.generation, at)
        if kind.ended and row.phase not in kind.ended:
            reason = DELETED
    return not kind.has_objects, reason, codec.dump(status.conditions), status.finished_at


async def _lock(connection: Connection, uid: UUID) -> SampleRow:
    row = await connection.fetchrow(_LOCK, uid)
    if row is None:
        raise NotFound("there is no such object")
    return sample_row(row)


async def record_change(
    connection: Connection, after: SampleRow, what: str, entry: tuple[datetime, str, str, Actor]
) -> None:
    """Write the history row, whose number the update has assigned, and the feed entry."""
    at, reason, message, actor = entry
    line = HistoryEntry(at=at, phase=after.phase, reason=reason, message=message, actor=actor)
    await connection.execute(SAMPLE_HISTORY.insert, *SAMPLE_HISTORY.arguments(after.uid, after.history_count, line))
    version = (after.namespace, after.uid, after.version)
    await changes.announce(connection, what, [version], resource=after.of_kind.resource)
