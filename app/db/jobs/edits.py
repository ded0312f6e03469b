"""Requests of clients that change a stored job (edit, cancel, delete), and reports of its own pods.

Each request is one transaction. It increases `version` and `intent_version`, and writes a history row with reason and
actor, and a feed entry. The controller later writes rows of its own. A repeated cancel or delete changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.feed import changes
from app.db.jobs.rows import COLUMNS, JOB_HISTORY, JobRow, job_row
from app.db.objects.history import CANCEL_REQUESTED, DELETE_REQUESTED, EDITED
from app.db.objects.resources import Check
from app.db.postgres.columns import Columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.reservations import room_waits
from app.db.reservations.names import require_more, reserve_more
from app.db.reservations.pod_room import RoomReader, append, with_room
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, NotFound, PreconditionFailed
from app.domain.kinds.changes import is_respecified
from app.domain.plan import Manifest
from app.domain.reservations.name_ranges import NameRange
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits, PodRoom
from app.domain.resize import ScaleChange
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import TERMINAL_PHASES
from app.models.jobs import scale_records

_TERMINAL = sorted(TERMINAL_PHASES)

_LOCK = f"SELECT j.intent_version, {COLUMNS} FROM jobs AS j WHERE j.uid = $1 FOR UPDATE"  # noqa: S608  constants
_EDIT = f"""
UPDATE jobs AS j
SET manifest = $2, posted_manifest = COALESCE($8, posted_manifest), labels = $3,
    generation = generation + $7::int, version = version + 1, intent_version = intent_version + 1, intent_at = $5,
    history_count = history_count + 1, scale_count = scale_count + $4, planned_pods = planned_pods + $6
WHERE uid = $1 RETURNING j.history_count, j.scale_count, {COLUMNS}
"""  # noqa: S608  constants
# The statement checks the phase again, because the controller may end the job after the service has read it. Replicas
# that its clean-up policy keeps can be cancelled after the end.
_CANCEL = f"""
UPDATE jobs AS j
SET cancel_requested_at = $2, cancel_requested_by = $3, cancel_requested_by_id = $6, cancel_reason = $4,
    version = version + 1, intent_version = intent_version + 1, intent_at = $2, history_count = history_count + 1
WHERE uid = $1 AND cancel_requested_at IS NULL AND remove_requested_at IS NULL
    AND (phase <> ALL($5::text[]) OR status ? 'still_running')
RETURNING j.history_count, {COLUMNS}
"""  # noqa: S608  constants
# A job that has ended must not appear as cancelled because it is deleted. An imported one has no objects to remove.
_DELETE = f"""
UPDATE jobs AS j
SET remove_requested_at = COALESCE(remove_requested_at, $2), deleted_at = $2,
    cancel_requested_at = CASE WHEN phase = ANY($5::text[]) THEN cancel_requested_at
                               ELSE COALESCE(cancel_requested_at, $2) END,
    cancel_requested_by = CASE WHEN phase = ANY($5::text[]) THEN cancel_requested_by
                               ELSE COALESCE(cancel_requested_by, $3) END,
    cancel_requested_by_id = CASE WHEN phase = ANY($5::text[]) OR cancel_requested_by IS NOT NULL
                                  THEN cancel_requested_by_id ELSE $6 END,
    cancel_reason = CASE WHEN phase = ANY($5::text[]) THEN cancel_reason ELSE COALESCE(cancel_reason, $4) END,
    version = version + 1, intent_version = intent_version + 1, history_count = history_count + 1,
    intent_at = CASE WHEN imported_at IS NULL THEN $2::timestamptz END
WHERE uid = $1 AND deleted_at IS NULL
RETURNING j.history_count, {COLUMNS}
"""  # noqa: S608  constants
# `status_version` is unchanged, so a concurrent decision of the controller stays valid.
_REPORT = """
UPDATE jobs SET reported = $2, version = version + 1
WHERE uid = $1 AND reported IS DISTINCT FROM $2 AND phase <> ALL($3::text[]) AND deleted_at IS NULL
RETURNING namespace, uid, version
"""
_LIVES = "SELECT phase <> ALL($2::text[]) AND deleted_at IS NULL FROM jobs WHERE uid = $1"
_PIN = f"""
UPDATE jobs AS j
SET manifest = $2, posted_manifest = COALESCE($3, posted_manifest), version = version + 1,
    history_count = history_count + 1
WHERE uid = $1 AND version = $4 AND phase = ANY($5::text[]) AND deleted_at IS NULL
RETURNING j.history_count, {COLUMNS}
"""  # noqa: S608  constants
_SCALED: Final = record_columns(scale_records, ScaleChange)
_SCALE: Final = f"""
INSERT INTO scale_records (job_uid, seq, actor, actor_id, requested_at, {_SCALED})
SELECT $1, $2 + number, $3, $4, $5, {_SCALED} FROM {_SCALED.rows("w", first=6, number="number")}
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEdit:
    """A new manifest, with its preconditions and consequences. `posted` is the new posted one; None leaves it.

    `expected_version` refuses the edit after any change of the job, `expected_intent_version` only after another edit,
    a cancel or a delete. None is no precondition. `names` are names that the job may use after the edit, in addition to
    those that it has. `added_pods` is the change of the number of planned pods in `namespace`, that of the job.
    `is_request` increases the generation even if the spec stays, because the controller has to carry something out.
    """

    namespace: str
    manifest: Manifest
    posted: Manifest | None = None
    labels: Mapping[str, str]
    actor: Actor
    at: datetime
    expected_version: int | None = None
    expected_intent_version: int | None = None
    reason: str = EDITED
    message: str = ""
    scales: Sequence[ScaleChange] = ()
    added_pods: int = 0
    names: Sequence[NameRange] = ()
    is_request: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The manifest of an ended job with another annotation `jobgate.dev/keep`. None leaves the posted one."""

    manifest: Manifest
    posted: Manifest | None
    expected_version: int
    actor: Actor
    at: datetime


async def pin(db: Database, uid: UUID, change: Pin) -> JobRow:
    """Replace the manifest of an ended job by one that pins it, or does not. The controller has nothing to do.

    Raises:
        PreconditionFailed: the job has another version, lives, or is no longer stored.
    """
    async with db.begin() as connection:
        values = (change.manifest, change.posted, change.expected_version, _TERMINAL)
        after = await connection.fetchrow(_PIN, uid, *values)
        if after is None:
            raise PreconditionFailed("the job has changed since it was read: read it again and repeat the edit")
        return await record_change(connection, after, changes.EDITED, (change.at, EDITED, "", change.actor))


async def edit(db: Database, uid: UUID, change: JobEdit, limits: PodLimits = DEFAULT_LIMITS) -> JobRow:
    """Replace the manifest.

    Raises:
        NotFound, PreconditionFailed: the job does not exist, or its version is not the expected one.
        Conflict: the job has ended or is being deleted, another live job uses a name that it needs, or the additional
            pods exceed a limit.
    """

    async def store(connection: Connection, room: RoomReader) -> JobRow:
        return await edit_in(connection, await room.read(connection), uid, change)

    after = await with_room(db, {change.namespace: change.added_pods}, limits, store)
    reach(FaultPoint.EDIT_STORED)
    return after


async def edit_in(connection: Connection, room: PodRoom, uid: UUID, change: JobEdit) -> JobRow:
    """Do what `edit` does, inside the caller's transaction, which has reserved `room` for the additional pods."""
    # Names before rows, as in every transaction. In another order, two of them could deadlock.
    await reserve_more(connection, uid, change.names)
    before = await connection.fetchrow(_LOCK, uid)
    job = _require(uid, before, change)
    planned = await _plan_pods(connection, room, uid, change)
    await require_more(connection, uid, job.namespace, change.names)
    respecified = int(change.is_request or is_respecified(job.manifest, change.manifest))
    values = (change.manifest, dict(change.labels), len(change.scales), change.at, planned, respecified)
    after = await connection.fetchrow(_EDIT, uid, *values, change.posted)
    await append(connection, job.namespace, planned)
    await _scale(connection, uid, after["scale_count"] - len(change.scales), change)
    return await record_change(
        connection, after, changes.EDITED, (change.at, change.reason, change.message, change.actor)
    )


async def _plan_pods(connection: Connection, room: PodRoom, uid: UUID, change: JobEdit) -> int:
    """Return how many planned pods the edit adds: none while the job waits for room for all of them.

    Raises:
        Conflict: the additional pods exceed a limit, or the job would never have room.
    """
    if not change.added_pods:
        return 0
    total = await room_waits.resize(connection, uid, change.added_pods)
    if total is None:
        over = room.take(change.namespace, change.added_pods)
    else:
        over = room.exceed(change.namespace, total) if change.added_pods > 0 else None
    if over is not None:
        raise Conflict("the job cannot grow so far now", code="TooManyPods", errors=[over.error("/spec")])
    return change.added_pods if total is None else 0


def _require(uid: UUID, locked: Any, change: JobEdit) -> JobRow:
    if locked is None:
        raise NotFound(f"there is no job {uid}")
    job = job_row(locked)
    expected = (change.expected_version, job.version), (change.expected_intent_version, locked["intent_version"])
    if any(wanted not in (None, present) for wanted, present in expected):
        raise PreconditionFailed("the job has changed since it was read: read it again and repeat the edit")
    if job.deleted_at is not None or job.remove_requested_at is not None:
        raise Conflict("the job is being deleted and cannot be edited", code="Deleted")
    if job.has_ended:
        raise Conflict(f"the job has ended as {job.status.phase} and cannot be edited", code="AlreadyFinished")
    return job


async def request_cancel(
    db: Database, uid: UUID, *, actor: Actor, at: datetime, reason: str | None = None, check: Check | None = None
) -> JobRow:
    """Request the cancellation of a job. If it has ended or was cancelled before, nothing changes.

    Raises:
        NotFound: the job does not exist. `check` may raise other errors for the locked job.
    """
    async with db.begin() as connection:
        await _check(connection, uid, check)
        after = await connection.fetchrow(_CANCEL, uid, at, actor.name, reason, _TERMINAL, actor.id)
        if after is None:
            return await _lock(connection, uid)
        return await record_change(connection, after, changes.CANCELLED, (at, CANCEL_REQUESTED, reason or "", actor))


async def request_deletion(
    db: Database, uid: UUID, *, actor: Actor, at: datetime, reason: str | None = None, check: Check | None = None
) -> JobRow:
    """Hide a job from lists and request the removal of all its objects, which cancels a live job.

    A repeated request changes nothing.

    Raises:
        NotFound: the job does not exist. `check` may raise other errors for the locked job.
    """
    async with db.begin() as connection:
        await _check(connection, uid, check)
        after = await connection.fetchrow(_DELETE, uid, at, actor.name, reason, _TERMINAL, actor.id)
        if after is None:
            return await _lock(connection, uid)
        return await record_change(connection, after, changes.DELETED, (at, DELETE_REQUESTED, reason or "", actor))


async def set_reported(db: Database, uid: UUID, value: Mapping[str, Any]) -> bool:
    """Replace the report of the job's own pods, and return whether it changed.

    Raises:
        NotFound: the job does not exist.
        Conflict: the job has ended or was deleted (AlreadyFinished); its record no longer changes.
    """
    async with db.begin() as connection:
        after = await connection.fetchrow(_REPORT, uid, dict(value), _TERMINAL)
        if after is not None:
            await changes.announce(connection, changes.STATUS, [tuple(after)])
            return True
        lives = await connection.fetchval(_LIVES, uid, _TERMINAL)
        if lives is None:
            raise NotFound(f"there is no job {uid}")
        if not lives:
            raise Conflict("the job has ended: its pods cannot report any more", code="AlreadyFinished")
        return False


async def _check(connection: Connection, uid: UUID, check: Check | None) -> None:
    if check is not None:
        # The row stays locked until the write, so nothing changes after the check.
        check(await _lock(connection, uid))


async def _lock(connection: Connection, uid: UUID) -> JobRow:
    row = await connection.fetchrow(_LOCK, uid)
    if row is None:
        raise NotFound(f"there is no job {uid}")
    return job_row(row)


async def record_change(
    connection: Connection, after: Any, what: str, entry: tuple[datetime, str, str, Actor]
) -> JobRow:
    """Write the history row, whose number the update has assigned, and the feed entry."""
    at, reason, message, actor = entry
    job = job_row(after)
    line = HistoryEntry(at=at, phase=job.status.phase, reason=reason, message=message, actor=actor)
    await connection.execute(JOB_HISTORY.insert, *JOB_HISTORY.arguments(job.uid, after["history_count"], line))
    await changes.announce(connection, what, [(job.namespace, job.uid, job.version)])
    return job


async def _scale(connection: Connection, uid: UUID, count: int, change: JobEdit) -> None:
    if change.scales:
        rows = [_SCALED.values(scale) for scale in change.scales]
        actor = change.actor
        await connection.execute(_SCALE, uid, count, actor.name, actor.id, change.at, *Columns.arguments(rows))
