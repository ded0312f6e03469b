"""The jobs that wait for room for their pods, and the turns in which they get it: by priority, then by age.

    submission ─▶ row in `room_waits`, `jobs.planned_pods` is 0 ─▶ turn: no row, the pods are planned ─▶ end
                                  └──────────────────────── cancel, delete ─────────────────────────────┘

A job never waits again once it has room. A transaction that changes a row has locked the row of its job, or has just
inserted it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.columns import Columns, columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import any_length
from app.db.reservations.pod_room import RoomReader, alone_with_room, read_room
from app.domain.reservations.pod_limits import JobWithoutRoom, PodLimits, PodRoom, RoomWait
from app.models.reservations import room_waits

SHOWN_BEFORE: Final = 5
"""The jobs that the message of a waiting one names."""
_STARTED_AT_ONCE: Final = 100

_ROW: Final = columns(room_waits, "job_uid", "namespace", "priority", "created_at", "pods")
_ADD: Final = f"""
INSERT INTO room_waits ({_ROW}) SELECT {_ROW} FROM {_ROW.rows("w", number="number")} ORDER BY number
"""  # noqa: S608  constants
_UIDS: Final = any_length("$1::uuid[]")
_RESIZE: Final = "UPDATE room_waits SET pods = pods + $2 WHERE job_uid = $1 RETURNING pods"
_FORGET: Final = f"DELETE FROM room_waits WHERE job_uid = ANY({_UIDS})"  # noqa: S608  constants
_OF_JOBS: Final = f"SELECT job_uid, namespace, pods FROM room_waits WHERE job_uid = ANY({_UIDS})"  # noqa: S608
# Each step finds the next namespace in the index, so that the jobs of one namespace are not read one by one.
_NAMESPACES: Final = """
WITH RECURSIVE spaces AS (
    (SELECT namespace FROM room_waits ORDER BY namespace LIMIT 1)
    UNION ALL
    SELECT (SELECT namespace FROM room_waits WHERE namespace > spaces.namespace ORDER BY namespace LIMIT 1)
    FROM spaces WHERE namespace IS NOT NULL
)
SELECT namespace FROM spaces WHERE namespace IS NOT NULL
"""
# Jobs that can never have room are left out: all others would wait for them.
_FIRST: Final = """
SELECT spaces.namespace, first.job_uid, first.pods
FROM unnest($1::text[]) AS spaces (namespace)
CROSS JOIN LATERAL (
    SELECT * FROM room_waits WHERE namespace = spaces.namespace AND pods <= $2::bigint
    ORDER BY priority DESC, created_at, id LIMIT $3
) AS first
ORDER BY spaces.namespace, first.priority DESC, first.created_at, first.id
"""
_NAMES: Final = f"SELECT uid, name FROM jobs WHERE uid = ANY({_UIDS})"  # noqa: S608  constants
# An UPDATE locks rows in any order. So all of them are locked before, in order of uid.
_LOCK: Final = f"SELECT uid FROM jobs WHERE uid = ANY({_UIDS}) ORDER BY uid FOR UPDATE"  # noqa: S608  constants
# A process of another version may have ended a job that waits: then its row vanishes here, and no pods are planned.
_START: Final = f"""
WITH started AS (
    DELETE FROM room_waits WHERE job_uid = ANY({_UIDS}) RETURNING job_uid, pods
), planned AS (
    UPDATE jobs SET planned_pods = started.pods FROM started WHERE uid = started.job_uid AND finished_at IS NULL
    RETURNING uid, namespace, planned_pods
), counted AS (
    INSERT INTO planned_pods (namespace, pods)
    SELECT namespace, sum(planned_pods) FROM planned GROUP BY namespace HAVING sum(planned_pods) > 0
)
SELECT uid FROM planned
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWait:
    """A row to store: what a new job waits for, and what decides when its turn is."""

    job_uid: UUID
    namespace: str
    priority: int
    created_at: datetime
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The jobs of a namespace that get room next, in this order, and how many pods the namespace has."""

    namespace: str
    jobs: tuple[JobWithoutRoom, ...]
    planned: int


async def add(connection: Connection, waits: Sequence[NewWait]) -> None:
    """Store that these new jobs wait. At the same time of submission, they wait in this order."""
    if waits:
        await connection.execute(_ADD, *Columns.arguments([_ROW.values(wait) for wait in waits]))


async def resize(connection: Connection, uid: UUID, added: int) -> int | None:
    """Change the pods that the job waits for, and return their number; None if it does not wait."""
    total: int | None = await connection.fetchval(_RESIZE, uid, added)
    return total


async def forget(connection: Connection, uids: Sequence[UUID]) -> None:
    """Let these jobs wait no longer. They get no room."""
    await connection.execute(_FORGET, uids)


async def load(connection: Connection, uids: Sequence[UUID], limits: PodLimits) -> dict[UUID, RoomWait]:
    """Return what those of the jobs that wait for room wait for."""
    if not uids:
        return {}
    rows = await connection.fetch(_OF_JOBS, uids)
    namespaces = sorted({row["namespace"] for row in rows})
    room = await read_room(connection, namespaces, limits)
    # One more than shown, because a job that comes after all that are shown knows its place, too.
    first = await _first(connection, namespaces, limits, SHOWN_BEFORE + 1)
    shown = [job.uid for jobs in first.values() for job in jobs]
    names = {row["uid"]: row["name"] for row in await connection.fetch(_NAMES, shown)}
    found = {}
    for row in rows:
        uid, jobs = row["job_uid"], first.get(row["namespace"], [])
        place = next((index for index, job in enumerate(jobs) if job.uid == uid), None)
        earlier = jobs[: SHOWN_BEFORE if place is None else place]
        before = [names[job.uid] for job in earlier if job.uid in names]
        found[uid] = _wait(row["namespace"], row["pods"], before, room, is_complete=place is not None)
    return found


async def turns(db: Database, limits: PodLimits, namespaces: Sequence[str] | None = None) -> tuple[list[Turn], PodRoom]:
    """Return the next turn of each of the namespaces in which jobs wait, by default of all, and the room there."""
    async with db.read() as connection:
        if namespaces is None:
            namespaces = [row["namespace"] for row in await connection.fetch(_NAMESPACES)]
        if not namespaces:
            return [], PodRoom(limits)
        room = await read_room(connection, namespaces, limits)
        first = await _first(connection, namespaces, limits, SHOWN_BEFORE + 1)
    found = [
        Turn(namespace=namespace, jobs=tuple(jobs), planned=room.by_namespace.get(namespace, 0))
        for namespace, jobs in first.items()
    ]
    return found, room


async def start(db: Database, lease: Lease, namespace: str, limits: PodLimits) -> list[UUID]:
    """Give room to the jobs of the namespace whose turn it is, and return their uids, at most a hundred.

    Raises:
        LeaseLost: another controller holds the lease.
        DatabaseContended: submissions hold the locks for too long; nothing is changed.
    """

    async def work(connection: Connection, reader: RoomReader) -> list[UUID]:
        await leases.fence(connection, lease)
        room = await reader.read(connection)
        first = await _first(connection, [namespace], limits, _STARTED_AT_ONCE)
        chosen = [job.uid for job in room.take_in_turn(namespace, first.get(namespace, ()))]
        if not chosen:
            return []
        # A job that ended before its row was locked has no row here. What others still want can only be less.
        await connection.execute(_LOCK, chosen)
        started = {row["uid"] for row in await connection.fetch(_START, chosen)}
        return [uid for uid in chosen if uid in started]

    started = await alone_with_room(db, namespace, limits, work)
    if started:
        reach(FaultPoint.ROOM_GIVEN)
    return started


async def _first(
    connection: Connection, namespaces: Sequence[str], limits: PodLimits, count: int
) -> Mapping[str, list[JobWithoutRoom]]:
    """Return the jobs that get room next, in their order, by namespace."""
    found: dict[str, list[JobWithoutRoom]] = {}
    for row in await connection.fetch(_FIRST, namespaces, limits.largest_job, count):
        job = JobWithoutRoom(uid=row["job_uid"], pods=row["pods"])
        found.setdefault(row["namespace"], []).append(job)
    return found


def _wait(namespace: str, pods: int, before: Sequence[str], room: PodRoom, *, is_complete: bool) -> RoomWait:
    planned = room.by_namespace.get(namespace, 0)
    fits_here, fits = planned + pods <= room.limits.namespace, room.planned + pods <= room.limits.installation
    return RoomWait(
        pods=pods,
        planned=planned,
        limit=room.limits.namespace,
        before=tuple(before),
        is_complete=is_complete,
        is_installation_full=is_complete and not before and fits_here and not fits,
    )
