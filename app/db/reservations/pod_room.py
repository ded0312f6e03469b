"""Enforces the limits on planned pods, without one row that every submission updates.

Each transaction appends its change to `planned_pods`; the sum of the rows is the number of planned pods. Transactions
do not see each other before they commit, so each one first takes an advisory lock:

    far from the limits ─▶ one of STRIPES locks: concurrent transactions together cannot exceed a limit
    near a limit        ─▶ all locks: there are no concurrent transactions, and the sum is exact

A transaction takes these locks before all others, so a transaction that waits for one holds no other lock. Removing
pods needs no lock: a transaction that does not see the removal yet refuses too much at worst. Where jobs wait for room
(`app/db/reservations/room_waits.py`), only the turn of these jobs adds pods, with all locks.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from app.db.postgres.engine import Connection, Database
from app.domain.reservations.pod_limits import PodLimits, PodRoom

STRIPES: Final = 8
_LOCK: Final = 0x706F6473  # the first key of these advisory locks
# With more rows than this, a reader folds the rows of each namespace into one. `entries` of the total excludes two rows
# for each namespace: a fold leaves one, and many namespaces must not make every submission fold again.
_MANY_ROWS: Final = 256

_T = TypeVar("_T")

# Each connection has its own backend, so concurrent transactions spread over the stripes. These have no parameters, so
# that they can follow BEGIN in one round trip.
_TAKE_ONE: Final = f"SELECT pg_advisory_xact_lock({_LOCK}, pg_backend_pid() % {STRIPES})"
# In ascending order, so that two transactions cannot deadlock.
_TAKE_ALL: Final = f"SELECT pg_advisory_xact_lock({_LOCK}, stripe) FROM generate_series(0, {STRIPES - 1}) AS stripe"  # noqa: S608
# The rows are read once for both parts of `rows_of_pods`: this runs in every transaction that adds pods.
PLANNED: Final = """planned AS MATERIALIZED (
    SELECT namespace, sum(pods)::bigint AS pods, count(*) AS entries FROM planned_pods GROUP BY namespace
)"""
"""SQL: the part of a WITH clause that `rows_of_pods` reads."""


def rows_of_pods(namespaces: int) -> str:
    """SQL: the rows that `RoomReader.of` takes. The parameter of this number is `RoomReader.namespaces`."""
    return f"""
SELECT namespace, pods, entries, 0::bigint AS waiting FROM planned WHERE namespace = ANY(${namespaces}::text[])
UNION ALL
SELECT NULL, COALESCE(sum(pods), 0)::bigint, COALESCE(sum(entries), 0)::bigint - 2 * count(*), 0 FROM planned
UNION ALL
SELECT namespace, 0, 0, count(*) FROM room_waits WHERE namespace = ANY(${namespaces}::text[]) GROUP BY namespace
"""  # noqa: S608  constants


_PLANNED: Final = f"WITH {PLANNED}{rows_of_pods(1)}"
# A concurrent fold has locked its rows and replaces them, so they are skipped and counted once.
_FOLD = """
WITH old AS (
    DELETE FROM planned_pods WHERE id IN (SELECT id FROM planned_pods FOR UPDATE SKIP LOCKED)
    RETURNING namespace, pods
)
INSERT INTO planned_pods (namespace, pods)
SELECT namespace, sum(pods) FROM old GROUP BY namespace HAVING sum(pods) <> 0
"""
# One statement, so that the jobs and the replaced rows belong to the same snapshot.
_RECOUNT = """
WITH old AS (DELETE FROM planned_pods)
INSERT INTO planned_pods (namespace, pods)
SELECT namespace, sum(planned_pods) FROM jobs
WHERE NOT quiet AND finished_at IS NULL GROUP BY namespace HAVING sum(planned_pods) <> 0
"""
_APPEND = "INSERT INTO planned_pods (namespace, pods) VALUES ($1, $2)"
_ENDED = """
INSERT INTO planned_pods (namespace, pods)
SELECT namespace, -sum(planned_pods) FROM jobs WHERE uid = ANY($1::uuid[]) AND planned_pods <> 0 GROUP BY namespace
"""


class _NearLimit(Exception):  # noqa: N818 - leaves a transaction that is then rolled back and retried
    """The transaction needs all locks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomReader:
    """Reads the room for the pods that a transaction wants to add, by namespace.

    `alone` says that it holds all locks.
    """

    wanted: Mapping[str, int]
    limits: PodLimits
    alone: bool = False

    @property
    def adds(self) -> bool:
        """Whether the transaction wants to add pods. Otherwise it needs no lock."""
        return any(pods > 0 for pods in self.wanted.values())

    @property
    def namespaces(self) -> list[str]:
        return list(self.wanted)

    async def read(self, connection: Connection) -> PodRoom:
        """Return the room, read by a statement of its own."""
        if not self.adds:
            return PodRoom(self.limits)
        return await self.of(connection, await connection.fetch(_PLANNED, self.namespaces))

    async def of(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> PodRoom:
        """Return the room of the rows of `rows_of_pods`, which a statement of the caller has read."""
        if not self.adds:
            return PodRoom(self.limits)
        room = _room_of(rows, self.limits)
        if not self.alone and not room.is_far_from_full(self.wanted, STRIPES):
            # The lock is given up first: two transactions that hold one stripe each and wait for all would deadlock.
            raise _NearLimit
        if any(row["namespace"] is None and row["entries"] > _MANY_ROWS for row in rows):
            await connection.execute(_FOLD)
        return room


def _room_of(rows: Sequence[Mapping[str, Any]], limits: PodLimits) -> PodRoom:
    room = PodRoom(limits)
    for row in rows:
        # The row without a namespace is the total.
        if row["namespace"] is None:
            room.planned = row["pods"]
        elif row["waiting"]:
            room.waiting[row["namespace"]] = row["waiting"]
        else:
            room.by_namespace[row["namespace"]] = row["pods"]
    return room


async def read_room(connection: Connection, namespaces: Sequence[str], limits: PodLimits) -> PodRoom:
    """Return the present room in these namespaces, to which the caller adds no pods."""
    return _room_of(await connection.fetch(_PLANNED, namespaces), limits)


async def with_room(
    db: Database,
    wanted: Mapping[str, int],
    limits: PodLimits,
    work: Callable[[Connection, RoomReader], Awaitable[_T]],
) -> _T:
    """Run `work` in a transaction that may add these pods, by namespace.

    Before it adds pods, it reads the room for them, which decides which jobs fit. Near a limit, it is rolled back there
    and runs a second time.
    """
    try:
        return await _run(db, RoomReader(wanted=wanted, limits=limits), work)
    except _NearLimit:
        return await _run(db, RoomReader(wanted=wanted, limits=limits, alone=True), work)


async def alone_with_room(
    db: Database, namespace: str, limits: PodLimits, work: Callable[[Connection, RoomReader], Awaitable[_T]]
) -> _T:
    """Do what `with_room` does, for any number of pods of one namespace, beside no transaction that adds pods."""
    return await _run(db, RoomReader(wanted={namespace: limits.namespace}, limits=limits, alone=True), work)


async def _run(db: Database, room: RoomReader, work: Callable[[Connection, RoomReader], Awaitable[_T]]) -> _T:
    lock = _TAKE_ALL if room.alone else _TAKE_ONE
    async with db.begin(f"BEGIN; {lock}" if room.adds else "BEGIN") as connection:
        return await work(connection, room)


async def recount(db: Database) -> None:
    """Compute the sums again from the jobs that have not ended.

    During a rolling upgrade, a controller of an earlier version ends jobs without removing their pods from the sums.

    Raises:
        DatabaseContended: submissions hold the locks; the sums are unchanged.
    """
    async with db.begin(f"BEGIN; {_TAKE_ALL}") as connection:
        await connection.execute(_RECOUNT)


async def append(connection: Connection, namespace: str, pods: int) -> None:
    """Record a change of the number of planned pods; `pods` may be negative."""
    if pods:
        await connection.execute(_APPEND, namespace, pods)


async def release(connection: Connection, ended: Sequence[UUID]) -> None:
    """Record that these jobs, which have just ended, plan no pods."""
    await connection.execute(_ENDED, ended)
