"""Names in a namespace: whose one is by now, more of them for a job that grows, and leftovers that are in the way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from app.db.columns import Columns, columns
from app.db.engine import Connection, Database
from app.db.errors import DatabaseContended
from app.db.feed import changes
from app.db.history import REMOVE_REQUESTED
from app.domain.errors import Conflict, FieldError
from app.domain.reservations.name_ranges import NameKind, NameRange, split, without
from app.domain.status.records import ACTOR_CONTROLLER
from app.models.reservations import names as names_table

Reservation: TypeAlias = tuple[UUID, str, NameRange]  # job, namespace, names

# Rows `n` that have a name in common with a range `w`: those that begin within it, and those that begin before it.
_SHARING = """
unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::int[]) AS w(namespace, kind, stem, first, last)
CROSS JOIN LATERAL (
    SELECT * FROM names
    WHERE (namespace, kind, stem) = (w.namespace, w.kind, w.stem) AND number BETWEEN w.first AND w.last
    UNION ALL
    SELECT * FROM names
    WHERE (namespace, kind, stem) = (w.namespace, w.kind, w.stem) AND count > 1
      AND number < w.first AND number + count > w.first
) AS n
"""
_TAKEN_OVER = f"""
SELECT EXISTS (
    SELECT FROM {_SHARING}
    JOIN jobs AS this ON this.uid = $6 AND this.uid <> n.job_uid
    JOIN jobs AS other ON other.uid = n.job_uid AND other.created_at > this.created_at
)
"""  # noqa: S608  a fragment of our own
_HOLDERS = f"""
SELECT n.namespace, n.kind, n.name, n.count, n.job_uid, j.name AS job_name
FROM {_SHARING} LEFT JOIN jobs AS j ON j.uid = n.job_uid
WHERE NOT n.released ORDER BY n.kind, n.stem, n.number
"""  # noqa: S608  a fragment of our own
_RANGE: Final = columns(names_table, "kind", "name", "count")
_ROW: Final = columns(names_table, "job_uid", "namespace") + _RANGE
_OWN: Final = f"SELECT {_RANGE} FROM names WHERE job_uid = $1 AND NOT released"  # noqa: S608  constants
_RESERVE: Final = f"""
INSERT INTO names ({_ROW}) SELECT {_ROW} FROM {_ROW.rows("w", place="place")} ORDER BY place
ON CONFLICT DO NOTHING RETURNING job_uid, {_RANGE}
"""  # noqa: S608  constants
_LOCK_ALL = f"""
SELECT uid FROM jobs
WHERE uid = $6 OR remove_requested_at IS NULL AND uid IN (SELECT n.job_uid FROM {_SHARING} WHERE n.released)
ORDER BY uid FOR UPDATE
"""  # noqa: S608  a fragment of our own
_CLEAR_THE_WAY = f"""
WITH locked AS MATERIALIZED (
    SELECT uid FROM jobs
    WHERE remove_requested_at IS NULL AND uid IN (SELECT n.job_uid FROM {_SHARING} WHERE n.released)
    ORDER BY uid FOR UPDATE
), removed AS (
    UPDATE jobs AS j
    SET remove_requested_at = clock_timestamp(), version = j.version + 1, intent_version = j.intent_version + 1,
        intent_at = clock_timestamp(), history_count = j.history_count + 1
    FROM locked WHERE j.uid = locked.uid
    RETURNING j.namespace, j.uid, j.version, j.history_count, j.phase, j.remove_requested_at
), history AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor)
    SELECT uid, history_count, remove_requested_at, phase, $6, 'a new job uses its names', $7 FROM removed
)
SELECT namespace, uid, version FROM removed
"""  # noqa: S608  a fragment of our own


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A live job that has `names` in `namespace`."""

    namespace: str
    names: NameRange
    job_uid: UUID
    job_name: str


async def pod_is_taken_over(db: Database, namespace: str, name: str, uid: UUID) -> bool:
    """Whether a job newer than this one uses the pod's name, so that what bears it is not this job's any more."""
    async with db.read() as connection:
        wanted = _columns([(namespace, NameRange(NameKind.POD, name))])
        return bool(await connection.fetchval(_TAKEN_OVER, *wanted, uid))


async def reserve(connection: Connection, wanted: Iterable[Reservation]) -> Mapping[UUID, set[NameRange]]:
    """Reserve those of the ranges that have no name in common with another live job's, and return them by job.

    Ranges are taken by family and number. Two transactions that want the same names meet in the same order, so they do
    not wait for each other.
    """
    ordered = sorted(wanted, key=_place)
    rows = [(uid, namespace, names.kind, names.name, names.count) for uid, namespace, names in ordered]
    got: dict[UUID, set[NameRange]] = {uid: set() for uid, *_ in rows}
    for uid, *names in await connection.fetch(_RESERVE, *Columns.arguments(rows)):
        got[uid].add(NameRange(*names))
    return got


async def holders(connection: Connection, wanted: Sequence[tuple[str, NameRange]]) -> list[Holder]:
    """The live jobs that have a name of these ranges, which are given with their namespaces."""
    return [
        Holder(
            namespace=row["namespace"],
            names=NameRange(row["kind"], row["name"], row["count"]),
            job_uid=row["job_uid"],
            job_name=row["job_name"],
        )
        for row in await connection.fetch(_HOLDERS, *_columns(wanted))
    ]


async def reserve_more(connection: Connection, uid: UUID, names: Sequence[NameRange]) -> None:
    """Take what is free of these names for a job that lives, and lock its row and those of their former users.

    Names come before rows and rows in order of uid, as everywhere, so that no two transactions wait for each other.
    """
    if names:
        namespace = await connection.fetchval("SELECT namespace FROM jobs WHERE uid = $1", uid)
        lacking = without(names, await _own(connection, uid))
        if namespace is not None and lacking:
            await reserve(connection, [(uid, namespace, one) for one in lacking])
        await connection.fetch(_LOCK_ALL, *_columns([(namespace, one) for one in names]), uid)


async def settle_more(connection: Connection, uid: UUID, namespace: str, names: Sequence[NameRange]) -> None:
    """See that the job has all of these names, and have what finished jobs left under them removed.

    Raises:
        Conflict: a live job uses one of them.
        DatabaseContended: one was given back just now; repeat it.
    """
    if not names:
        return
    lacking = without(names, await _own(connection, uid))
    if not lacking:
        await clear_the_way(connection, [(namespace, one) for one in names])
        return
    found = [one for one in await holders(connection, [(namespace, one) for one in lacking]) if one.job_uid != uid]
    if not found:
        raise DatabaseContended("the names that this job needs change hands too fast")
    holder = found[0]
    name = next(name for one in lacking if (name := one.first_shared(holder.names)) is not None)
    error = FieldError(
        pointer="/spec",
        code="NameTaken",
        detail=f"the live job {holder.job_name} ({holder.job_uid}) uses the {holder.names.kind} name {name}",
        accepted="a size without that name, or wait until that job ends",
    )
    raise Conflict("a name that this job would need is in use", code="NameTaken", errors=[error])


async def clear_the_way(connection: Connection, names: Sequence[tuple[str, NameRange]]) -> None:
    """Have the objects of finished jobs removed that bear one of these names, which are given with their namespaces."""
    if names:
        removed = await connection.fetch(_CLEAR_THE_WAY, *_columns(names), REMOVE_REQUESTED, ACTOR_CONTROLLER)
        await changes.announce(connection, changes.REMOVED, [tuple(row) for row in removed])


async def _own(connection: Connection, uid: UUID) -> list[NameRange]:
    return [NameRange(*row) for row in await connection.fetch(_OWN, uid)]


def _place(wanted: Reservation) -> tuple[str, str, str, int]:
    _, namespace, names = wanted
    return (namespace, names.kind, *split(names.name))


def _columns(wanted: Iterable[tuple[str, NameRange]]) -> list[list[Any]]:
    """The parameters of `_SHARING`."""
    rows = []
    for namespace, names in wanted:
        stem, first = split(names.name)
        rows.append((namespace, names.kind, stem, first, first + names.count - 1))
    return Columns.arguments(rows)
