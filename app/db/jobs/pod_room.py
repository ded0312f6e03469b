"""Holds submissions and growth to the limits on planned pods, without a row that every submission writes.

Each transaction appends what it adds or takes away to `planned_pods`; the sum is what is planned. Transactions do not
see one another before they commit, so each of them first takes an advisory lock:

    far from the limits ─▶ one of STRIPES locks: with a small share each, the unseen others cannot exceed a limit
    near a limit        ─▶ all of them: there are no others, and the sum is exact

The locks come before everything else that a transaction takes, so nobody who waits for one holds anything. What takes
pods away needs no lock: who does not see it refuses too much at worst.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar
from uuid import UUID

from app.db.engine import Connection, Database
from app.domain.reservations.pod_limits import PodLimits, PodRoom

STRIPES: Final = 8
_LOCK: Final = 0x706F6473  # the first key of these advisory locks
# Rows above which a reader folds them into one a namespace. Of the total, `entries` leaves out two rows a namespace: a
# fold cannot go below one, and must not be repeated by each submission where there are many namespaces.
_MANY_ROWS: Final = 256

_T = TypeVar("_T")

_TAKE_ONE = "SELECT pg_advisory_xact_lock($1::int, pg_backend_pid() % $2::int)"
_TAKE_ALL = "SELECT pg_advisory_xact_lock($1::int, stripe) FROM generate_series(0, $2::int - 1) AS stripe"
_PLANNED = """
SELECT namespace, sum(pods)::bigint AS pods, count(*) AS entries FROM planned_pods
WHERE namespace = ANY($1::text[]) GROUP BY namespace
UNION ALL SELECT NULL, COALESCE(sum(pods), 0)::bigint, count(*) - 2 * count(DISTINCT namespace) FROM planned_pods
"""
_FOLD = """
WITH old AS (
    DELETE FROM planned_pods WHERE id IN (SELECT id FROM planned_pods FOR UPDATE SKIP LOCKED)
    RETURNING namespace, pods
)
INSERT INTO planned_pods (namespace, pods)
SELECT namespace, sum(pods) FROM old GROUP BY namespace HAVING sum(pods) <> 0
"""
# One statement, so that the jobs and the rows that it replaces are those of one snapshot.
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


class _NearLimit(Exception):  # noqa: N818 - the way out of a transaction that is begun anew
    """The transaction needs all locks, and has done nothing yet."""


async def with_room(
    db: Database,
    wanted: Mapping[str, int],
    limits: PodLimits,
    work: Callable[[Connection, PodRoom], Awaitable[_T]],
) -> _T:
    """Run `work` in a transaction that may add these pods, by namespace. The room says of each job whether it fits."""
    try:
        return await _run(db, wanted, limits, work, alone=False)
    except _NearLimit:
        return await _run(db, wanted, limits, work, alone=True)


async def _run(
    db: Database,
    wanted: Mapping[str, int],
    limits: PodLimits,
    work: Callable[[Connection, PodRoom], Awaitable[_T]],
    *,
    alone: bool,
) -> _T:
    async with db.begin() as connection:
        if not any(pods > 0 for pods in wanted.values()):
            return await work(connection, PodRoom(limits))
        await connection.execute(_TAKE_ALL if alone else _TAKE_ONE, _LOCK, STRIPES)
        room = await _read(connection, list(wanted), limits)
        if not alone and not room.is_far_from_full(wanted, STRIPES):
            raise _NearLimit
        return await work(connection, room)


async def _read(connection: Connection, namespaces: Sequence[str], limits: PodLimits) -> PodRoom:
    rows = {row["namespace"]: row for row in await connection.fetch(_PLANNED, namespaces)}
    total = rows.pop(None)
    if total["entries"] > _MANY_ROWS:
        await connection.execute(_FOLD)
    by_namespace = {namespace: row["pods"] for namespace, row in rows.items()}
    return PodRoom(limits, planned=total["pods"], by_namespace=by_namespace)


async def recount(db: Database) -> None:
    """Replace the sums by those of the jobs that have not ended.

    A controller of an earlier version ends jobs without giving their pods back, during a rolling upgrade for instance.

    Raises:
        DatabaseContended: submissions hold the locks; the sums are as before.
    """
    async with db.begin() as connection:
        await connection.execute(_TAKE_ALL, _LOCK, STRIPES)
        await connection.execute(_RECOUNT)


async def append(connection: Connection, namespace: str, pods: int) -> None:
    """Note that a job has so many more pods planned, or fewer."""
    if pods:
        await connection.execute(_APPEND, namespace, pods)


async def give_back(connection: Connection, ended: Sequence[UUID]) -> None:
    """Note that these jobs, which have just ended, have no pods planned any more."""
    await connection.execute(_ENDED, ended)
