"""The attempts of jobs that have ended, as (task, rank, attempt), in that order."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.db.engine import Database
from app.db.rows import load_attempts, load_attempts_of
from app.domain.plan import Rank
from app.domain.status.records import Attempt


async def of(db: Database, uid: UUID) -> Sequence[tuple[str, int, Attempt]]:
    return (await of_many(db, [uid])).get(uid, ())


async def of_many(db: Database, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[tuple[str, int, Attempt]]]:
    """Of several jobs at once; a job without ended attempts is left out."""
    async with db.read() as connection:
        return await load_attempts(connection, uids)


async def of_replicas(db: Database, uid: UUID, keys: Sequence[Rank]) -> Sequence[tuple[str, int, Attempt]]:
    """Those of some replicas of one job."""
    async with db.read() as connection:
        return await load_attempts_of(connection, uid, keys)
