"""Reservations of names in a namespace, by submissions and by jobs that scale up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from app.db.feed import changes
from app.db.installation.timekeeping import NOW
from app.db.objects.history import REMOVE_REQUESTED
from app.db.postgres.columns import Columns, columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import DatabaseContended
from app.db.postgres.queries import any_length
from app.db.reservations.pod_room import PLANNED, RoomReader, rows_of_pods
from app.domain.access.actors import CONTROLLER
from app.domain.errors import Conflict, FieldError
from app.domain.reservations.name_ranges import NameKind, NameRange, split, without
from app.domain.reservations.pod_limits import PodRoom
from app.models.reservations import names as names_table

Reservation: TypeAlias = tuple[UUID, str, NameRange]  # job, namespace, names


def _sharing(first: int = 1) -> str:
    """SQL: rows `n` that share a name with a range `r`. The ranges are five parameters from number `first` on."""
    types = ("text", "text", "text", "int", "int")
    ranges = ", ".join(f"${first + index}::{kind}[]" for index, kind in enumerate(types))
    # Rows that begin inside the range, and rows that begin before and reach into it.
    return f"""
unnest({ranges}) AS r(namespace, kind, stem, first, last)
CROSS JOIN LATERAL (
    SELECT * FROM names
    WHERE (namespace, kind, stem) = (r.namespace, r.kind, r.stem) AND number BETWEEN r.first AND r.last
    UNION ALL
    SELECT * FROM names
    WHERE (namespace, kind, stem) = (r.namespace, r.kind, r.stem) AND count > 1
      AND number < r.first AND number + count > r.first
) AS n
"""  # noqa: S608  constants


def previous_objects_exist(first: int) -> str:
    """SQL: whether objects of an ended job have a name of the ranges that are the parameters from `first` on.

    `range_columns` makes the parameters.
    """
    return f"EXISTS (SELECT FROM {_sharing(first)} WHERE n.released)"


_SHARING: Final = _sharing()
# Only a newer job can have taken over the name: an older one has released it.
_TAKEN_OVER = f"""
SELECT EXISTS (
    SELECT FROM {_SHARING}
    JOIN jobs AS this ON this.uid = $6 AND this.uid <> n.job_uid
    JOIN jobs AS other ON other.uid = n.job_uid AND other.created_at > this.created_at
) OR EXISTS (SELECT FROM jobs WHERE uid = $6 AND imported_at IS NOT NULL)
"""  # noqa: S608  constants
_HOLDERS = f"""
SELECT n.namespace, n.kind, n.name, n.count, n.job_uid, j.name AS job_name
FROM {_SHARING} LEFT JOIN jobs AS j ON j.uid = n.job_uid
WHERE NOT n.released ORDER BY n.kind, n.stem, n.number
"""  # noqa: S608  constants
_RANGE: Final = columns(names_table, "kind", "name", "count")
_ROW: Final = columns(names_table, "job_uid", "namespace") + _RANGE
_OWN: Final = f"SELECT {_RANGE} FROM names WHERE job_uid = $1 AND NOT released"  # noqa: S608  constants
_OF_OBJECTS: Final = f"SELECT {_RANGE} FROM names WHERE job_uid = $1 AND kind = ANY({any_length('$2::text[]')})"  # noqa: S608
# ON CONFLICT without a target covers the unique index and the exclusion constraint. It waits for transactions that are
# inserting a conflicting row.
_RESERVE: Final = f"""
INSERT INTO names ({_ROW}) SELECT {_ROW} FROM {_ROW.rows("w", number="number")} ORDER BY number
ON CONFLICT DO NOTHING
"""  # noqa: S608  constants
# One statement, because each costs a round trip. The room is that before the statement, which waits for other
# transactions as long as they hold one of the names.
_RESERVE_WITH_ROOM: Final = f"""
WITH reserved AS ({_RESERVE} RETURNING 1), {PLANNED}
SELECT p.*, (SELECT count(*) FROM reserved) AS reserved FROM ({rows_of_pods(len(_ROW.names) + 1)}) AS p
"""  # noqa: S608  constants
_HELD: Final = f"SELECT job_uid, {_RANGE} FROM names WHERE job_uid = ANY($1::uuid[]) AND NOT released"  # noqa: S608
_LOCK_ALL = f"""
SELECT uid FROM jobs
WHERE uid = $6 OR remove_requested_at IS NULL AND uid IN (SELECT n.job_uid FROM {_SHARING} WHERE n.released)
ORDER BY uid FOR UPDATE
"""  # noqa: S608  constants
# An UPDATE locks rows in any order. So all of them are locked before, in order of uid.
_CLEAR_THE_WAY = f"""
WITH locked AS MATERIALIZED (
    SELECT uid FROM jobs
    WHERE remove_requested_at IS NULL AND uid IN (SELECT n.job_uid FROM {_SHARING} WHERE n.released)
    ORDER BY uid FOR UPDATE
), removed AS (
    UPDATE jobs AS j
    SET remove_requested_at = {NOW}, version = j.version + 1, intent_version = j.intent_version + 1,
        intent_at = {NOW}, history_count = j.history_count + 1
    FROM locked WHERE j.uid = locked.uid
    RETURNING j.namespace, j.uid, j.version, j.history_count, j.phase, j.remove_requested_at
), history AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor, actor_id)
    SELECT uid, history_count, remove_requested_at, phase, $6, 'a new job uses its names', $7, $8 FROM removed
)
SELECT namespace, uid, version FROM removed
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A live job that has reserved `names` in `namespace`."""

    namespace: str
    names: NameRange
    job_uid: UUID
    job_name: str


async def pod_is_taken_over(db: Database, namespace: str, name: str, uid: UUID) -> bool:
    """Return whether a pod with this name may belong to another job.

    That is so if a newer job uses the name, or if the job was imported and never had a pod here.
    """
    async with db.read() as connection:
        wanted = range_columns([(namespace, NameRange(NameKind.POD, name))])
        return bool(await connection.fetchval(_TAKEN_OVER, *wanted, uid))


async def of_objects(db: Database, uid: str, kinds: Iterable[NameKind]) -> list[NameRange]:
    """Return the names of these kinds that a job has used in any size. They are kept until its objects are gone."""
    async with db.read() as connection:
        return [NameRange(*row) for row in await connection.fetch(_OF_OBJECTS, UUID(uid), [*kinds])]


async def reserve(connection: Connection, wanted: Iterable[Reservation]) -> Mapping[UUID, list[NameRange]]:
    """Reserve the ranges that share no name with another live job, and return the others by job.

    Rows are inserted in order of namespace, kind, stem and number. So two calls that reserve the same names wait for
    each other, but do not deadlock.
    """
    ordered = sorted(wanted, key=_place)
    status: str = await connection.execute(_RESERVE, *_arguments(ordered))
    return {} if status == f"INSERT 0 {len(ordered)}" else await _lacking(connection, ordered)


async def reserve_with_room(
    connection: Connection, wanted: Iterable[Reservation], room: RoomReader
) -> tuple[Mapping[UUID, list[NameRange]], PodRoom]:
    """Do what `reserve` does, and read the room for pods. There is at least one range."""
    ordered = sorted(wanted, key=_place)
    rows = await connection.fetch(_RESERVE_WITH_ROOM, *_arguments(ordered), room.namespaces)
    found = await room.of(connection, rows)
    refused = {} if rows[0]["reserved"] == len(ordered) else await _lacking(connection, ordered)
    return refused, found


def _arguments(ordered: Sequence[Reservation]) -> list[list[Any]]:
    return Columns.arguments(
        [(uid, namespace, names.kind, names.name, names.count) for uid, namespace, names in ordered]
    )


async def _lacking(connection: Connection, ordered: Sequence[Reservation]) -> Mapping[UUID, list[NameRange]]:
    """Return those of the ranges that are not reserved for the job that wants them, by the uid of the job."""
    # A second statement, so that the frequent case returns no rows.
    held = {
        (uid, NameRange(*names)) for uid, *names in await connection.fetch(_HELD, list({uid for uid, *_ in ordered}))
    }
    refused: dict[UUID, list[NameRange]] = defaultdict(list)
    for uid, _, names in ordered:
        if (uid, names) not in held:
            refused[uid].append(names)
    return refused


async def holders(connection: Connection, wanted: Sequence[tuple[str, NameRange]]) -> list[Holder]:
    """Return the live jobs that have reserved a name of these ranges, given as pairs of namespace and range."""
    return [
        Holder(
            namespace=row["namespace"],
            names=NameRange(row["kind"], row["name"], row["count"]),
            job_uid=row["job_uid"],
            job_name=row["job_name"],
        )
        for row in await connection.fetch(_HOLDERS, *range_columns(wanted))
    ]


async def reserve_more(connection: Connection, uid: UUID, names: Sequence[NameRange]) -> None:
    """Reserve those of the names that are free for a live job, and lock its row and the rows of their former users.

    All transactions take names before rows, and rows in order of uid, so they cannot deadlock.
    """
    if names:
        namespace = await connection.fetchval("SELECT namespace FROM jobs WHERE uid = $1", uid)
        # The exclusion constraint would refuse a range that overlaps with one of the job's own.
        lacking = without(names, await _own(connection, uid))
        if namespace is not None and lacking:
            await reserve(connection, [(uid, namespace, names) for names in lacking])
        await connection.fetch(_LOCK_ALL, *range_columns([(namespace, name_range) for name_range in names]), uid)


async def require_more(connection: Connection, uid: UUID, namespace: str, names: Sequence[NameRange]) -> None:
    """Check that the job has reserved all of the names, and request the removal of old objects with these names.

    Raises:
        Conflict: another live job uses one of the names.
        DatabaseContended: another job released one of the names after `reserve_more`; the caller may retry.
    """
    if not names:
        return
    lacking = without(names, await _own(connection, uid))
    if not lacking:
        await request_removal_of_previous(connection, [(namespace, name_range) for name_range in names])
        return
    found = await holders(connection, [(namespace, name_range) for name_range in lacking])
    others = [holder for holder in found if holder.job_uid != uid]
    if not others:
        raise DatabaseContended("the names that this job needs change hands too fast")
    holder = others[0]
    name = next(name for names in lacking if (name := names.first_shared(holder.names)) is not None)
    error = FieldError(
        pointer="/spec",
        code="NameTaken",
        detail=f"the live job {holder.job_name} ({holder.job_uid}) uses the {holder.names.kind} name {name}",
        accepted="a size without that name, or wait until that job ends",
    )
    raise Conflict("a name that this job would need is in use", code="NameTaken", errors=[error])


async def request_removal_of_previous(connection: Connection, names: Sequence[tuple[str, NameRange]]) -> None:
    """Request the removal of finished jobs whose objects have one of these names, given as (namespace, range)."""
    if names:
        removed = await connection.fetch(
            _CLEAR_THE_WAY, *range_columns(names), REMOVE_REQUESTED, CONTROLLER.name, CONTROLLER.id
        )
        await changes.announce(connection, changes.REMOVED, [tuple(row) for row in removed])


async def _own(connection: Connection, uid: UUID) -> list[NameRange]:
    return [NameRange(*row) for row in await connection.fetch(_OWN, uid)]


def _place(wanted: Reservation) -> tuple[str, str, str, int]:
    _, namespace, names = wanted
    return (namespace, names.kind, *split(names.name))


def range_columns(wanted: Iterable[tuple[str, NameRange]]) -> list[list[Any]]:
    """Return ranges, given as pairs of namespace and range, as parameters. There is at least one."""
    rows = []
    for namespace, names in wanted:
        stem, first = split(names.name)
        rows.append((namespace, names.kind, stem, first, first + names.count - 1))
    return Columns.arguments(rows)
