"""The replicas of jobs, in order of task and rank."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.db.engine import Database
from app.db.rows import StoredReplica, load_replicas

__all__ = ["StoredReplica", "of", "of_many"]


async def of(db: Database, uid: UUID) -> Sequence[StoredReplica]:
    return (await of_many(db, [uid])).get(uid, ())


async def of_many(db: Database, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[StoredReplica]]:
    """Of several jobs at once; a job without replicas is left out."""
    async with db.read() as connection:
        return await load_replicas(connection, uids)
