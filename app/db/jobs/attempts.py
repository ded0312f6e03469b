"""The attempts of jobs that have ended, as (task, rank, attempt), in that order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from app.db import codec
from app.db.engine import Connection, Database
from app.domain.plan import Rank
from app.domain.status.records import Attempt

_ATTEMPT = ", ".join(codec.ATTEMPT_COLUMNS)
_ATTEMPTS = f"""
SELECT job_uid, task, rank, attempt, {_ATTEMPT}
FROM attempts WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, task, rank, attempt
"""  # noqa: S608  the columns are ours
_ATTEMPTS_OF = f"""
SELECT job_uid, task, rank, attempt, {_ATTEMPT}
FROM attempts JOIN unnest($2::text[], $3::int[]) AS w(task, rank) USING (task, rank)
WHERE job_uid = $1 ORDER BY task, rank, attempt
"""  # noqa: S608  the columns are ours


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


async def load_attempts(
    connection: Connection, uids: Sequence[UUID]
) -> Mapping[UUID, Sequence[tuple[str, int, Attempt]]]:
    """Task, rank and record of every attempt that has ended."""
    found: dict[UUID, list[tuple[str, int, Attempt]]] = defaultdict(list)
    for row in await connection.fetch(_ATTEMPTS, uids):
        found[row["job_uid"]].append((row["task"], row["rank"], codec.attempt_from(row, row["attempt"])))
    return found


async def load_attempts_of(
    connection: Connection, uid: UUID, keys: Sequence[Rank]
) -> Sequence[tuple[str, int, Attempt]]:
    """Task, rank and record of every attempt of these replicas that has ended."""
    columns = [key.task for key in keys], [key.rank for key in keys]
    rows = await connection.fetch(_ATTEMPTS_OF, uid, *columns)
    return [(row["task"], row["rank"], codec.attempt_from(row, row["attempt"])) for row in rows]
