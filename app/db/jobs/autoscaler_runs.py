"""The runs of the autoscaler, with their inputs and outputs: each decision can be inspected and computed again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.jobs import edits
from app.db.jobs.edits import JobEdit
from app.db.postgres import codec
from app.db.postgres.columns import columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.reservations.pod_room import RoomReader, with_room
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits
from app.domain.scaling.values import Inventory, ScalableJob, ScalingDecision, WaitingJob
from app.models.autoscaler import autoscaler_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerRun:
    """`pending` are the jobs that waited for room. If the inventory could not be read, `error` says why."""

    at: datetime
    enabled: bool
    max_load: float
    period_seconds: float
    freeze_seconds: float
    inventory: Inventory | None = None
    error: str = ""
    pending: tuple[WaitingJob, ...] = ()
    jobs: tuple[ScalableJob, ...] = ()
    decisions: tuple[ScalingDecision, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    id: int
    run: AutoscalerRun


_RUN: Final = record_columns(autoscaler_runs, AutoscalerRun)
_WRITTEN: Final = _RUN + columns(autoscaler_runs, "changed")
_WRITE: Final = f"""
INSERT INTO autoscaler_runs ({_WRITTEN}) SELECT {_WRITTEN} FROM {_WRITTEN.rows("w")} RETURNING id
"""  # noqa: S608  constants
_READ: Final = f"SELECT id, {_RUN} FROM autoscaler_runs"  # noqa: S608  constants
_PAGE = f"{_READ} WHERE id < $1 ORDER BY id DESC LIMIT $2"
_LAST_SEEN = f"{_READ} WHERE inventory IS NOT NULL ORDER BY id DESC LIMIT 1"
# OFFSET finds the newest run that is not kept, by the primary key and without a count.
_FORGET = """
DELETE FROM autoscaler_runs WHERE id IN (
    SELECT id FROM autoscaler_runs
    WHERE id <= (SELECT id FROM autoscaler_runs ORDER BY id DESC OFFSET $1 LIMIT 1) AND (NOT changed OR at < $2)
    ORDER BY id LIMIT $3)
"""


def _with_namespace(column: str) -> str:
    """Return the assignment of the namespace $2 to those elements of a column that are about jobs with the uids $1."""
    return f"""{column} = COALESCE((
        SELECT jsonb_agg(CASE WHEN item ->> 'uid' = ANY($1::text[])
                              THEN item || jsonb_build_object('namespace', $2::text) ELSE item END ORDER BY number)
        FROM jsonb_array_elements({column}) WITH ORDINALITY AS items(item, number)), '[]')"""  # noqa: S608  constants


_MOVE: Final = f"""
UPDATE autoscaler_runs SET {", ".join(map(_with_namespace, ("pending", "jobs", "decisions")))}
WHERE EXISTS (SELECT FROM jsonb_array_elements(pending || jobs || decisions) AS item
              WHERE item ->> 'uid' = ANY($1::text[]))
"""  # noqa: S608  constants
# A move waits for runs that are being written, and runs that are written during a move wait for its end. So each run
# is stored before a move, which updates it, or finds the namespaces after the move.
_LOCK_TO_MOVE: Final = "LOCK TABLE autoscaler_runs IN SHARE ROW EXCLUSIVE MODE"
_LOCK_TO_WRITE: Final = "LOCK TABLE autoscaler_runs IN ROW EXCLUSIVE MODE"
_MOVED: Final = """
SELECT jobs.uid, jobs.namespace
FROM unnest($1::uuid[], $2::text[]) AS seen (uid, namespace) JOIN jobs USING (uid)
WHERE jobs.namespace <> seen.namespace
"""
NEWEST = 2**62  # above every id

_Item = TypeVar("_Item", WaitingJob, ScalableJob, ScalingDecision)


async def apply(db: Database, lease: Lease, uid: UUID, change: JobEdit, limits: PodLimits = DEFAULT_LIMITS) -> None:
    """Store an edit that the autoscaler decided.

    Raises:
        LeaseLost: another controller holds the lease.
        NotFound, PreconditionFailed: the job changed after the decision.
        Conflict: the job has ended, another live job uses a name that it needs, or its pods exceed a limit.
        DatabaseContended: another transaction reserves or releases such a name.
    """

    async def store(connection: Connection, room: RoomReader) -> None:
        # Only the locks of `with_room` precede the fence. They come first in every transaction.
        await leases.fence(connection, lease)
        await edits.edit_in(connection, await room.read(connection), uid, change)

    await with_room(db, {change.namespace: change.added_pods}, limits, store)
    reach(FaultPoint.RESIZE_STORED)


async def write(db: Database, lease: Lease, run: AutoscalerRun) -> int:
    """Store a run and return its id. Jobs that have moved since it was computed get their present namespace.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    items: tuple[WaitingJob | ScalableJob | ScalingDecision, ...] = (*run.pending, *run.jobs, *run.decisions)
    seen = {item.uid: item.namespace for item in items}
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_LOCK_TO_WRITE)
        found = await connection.fetch(_MOVED, list(seen), list(seen.values()))
        run = _with_namespaces(run, {str(row["uid"]): row["namespace"] for row in found})
        row = (*_RUN.values(run), any(decision.applied for decision in run.decisions))
        written: int = await connection.fetchval(_WRITE, *_WRITTEN.arguments([row]))
    return written


async def move(connection: Connection, uids: Sequence[UUID], namespace: str) -> None:
    """Record these jobs, which have been moved in this transaction, as those of another namespace in all runs."""
    await connection.execute(_LOCK_TO_MOVE)
    await connection.execute(_MOVE, [str(uid) for uid in uids], namespace)


async def page(db: Database, *, before: int = NEWEST, limit: int) -> list[StoredRun]:
    """Return at most `limit` runs with ids below `before`, the newest first."""
    async with db.read() as connection:
        return [_run_from(row) for row in await connection.fetch(_PAGE, before, limit)]


async def last_seen(db: Database) -> StoredRun | None:
    """Return the newest run that has an inventory."""
    async with db.read() as connection:
        row = await connection.fetchrow(_LAST_SEEN)
    return None if row is None else _run_from(row)


async def forget(db: Database, *, before: datetime, keep: int, limit: int) -> int:
    """Delete at most `limit` runs that are not among the last `keep`, and return how many.

    Runs that changed the size of a job are kept until `before`.
    """
    async with db.read() as connection:
        status: str = await connection.execute(_FORGET, keep, before, limit)
    return int(status.rpartition(" ")[2])


def _with_namespaces(run: AutoscalerRun, namespaces: Mapping[str, str]) -> AutoscalerRun:
    """Return the run with these namespaces of jobs by uid."""

    def move_all(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
        return tuple(replace(item, namespace=namespaces.get(item.uid, item.namespace)) for item in items)

    if not namespaces:
        return run
    return replace(run, pending=move_all(run.pending), jobs=move_all(run.jobs), decisions=move_all(run.decisions))


def _run_from(row: Any) -> StoredRun:
    return StoredRun(id=row["id"], run=codec.load(_RUN.read(row), AutoscalerRun))
