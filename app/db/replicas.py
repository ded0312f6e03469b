"""The replicas of jobs, in order of task and rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.engine import Database
from app.db.rows import StoredReplica, load_replica_page, load_replicas
from app.domain.vocabulary import ReplicaPhase

__all__ = ["ReplicaFilter", "StoredReplica", "of", "of_many", "page", "tasks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFilter:
    """Which replicas of a job; None and an empty sequence leave nothing out."""

    task: str | None = None
    rank: int | None = None
    phases: Sequence[ReplicaPhase] = ()


async def of(db: Database, uid: UUID) -> Sequence[StoredReplica]:
    return (await of_many(db, [uid])).get(uid, ())


async def of_many(db: Database, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[StoredReplica]]:
    """Of several jobs at once; a job without replicas is left out."""
    async with db.read() as connection:
        return await load_replicas(connection, uids)


async def page(db: Database, uid: UUID, where: ReplicaFilter, *, start: int, limit: int) -> Sequence[StoredReplica]:
    """At most `limit` replicas of a job, without the first `start` ones."""
    async with db.read() as connection:
        return await load_replica_page(connection, uid, where.task, where.rank, where.phases, start, limit)


async def tasks(db: Database, uid: UUID) -> list[str]:
    """The tasks of which replicas are stored."""
    async with db.read() as connection:
        rows = await connection.fetch("SELECT DISTINCT task FROM replicas WHERE job_uid = $1 ORDER BY task", uid)
    return [row["task"] for row in rows]
