"""The ended attempts of jobs, as tuples of task, rank and record, sorted by task, rank and number."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from app.db.postgres import codec
from app.db.postgres.columns import columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.domain.plan import Rank
from app.domain.status.records import Attempt
from app.models.replicas import attempts

ATTEMPT: Final = record_columns(attempts, Attempt, elsewhere=["number"])
"""The columns of an attempt, which `replicas` has too. The column `attempt` holds the number."""
ATTEMPT_KEY: Final = columns(attempts, "job_uid", "task", "rank", "attempt")
_ATTEMPTS: Final = f"""
SELECT {ATTEMPT_KEY + ATTEMPT} FROM attempts WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, task, rank, attempt
"""  # noqa: S608  constants
_ATTEMPTS_OF: Final = f"""
SELECT {ATTEMPT_KEY + ATTEMPT}
FROM attempts JOIN unnest($2::text[], $3::int[]) AS w(task, rank) USING (task, rank)
WHERE job_uid = $1 ORDER BY task, rank, attempt
"""  # noqa: S608  constants


async def of_many(db: Database, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[tuple[str, int, Attempt]]]:
    """Return the attempts of each job. The result has no entry for a job without ended attempts."""
    async with db.read() as connection:
        return await load_attempts(connection, uids)


async def of_replicas(db: Database, uid: UUID, keys: Sequence[Rank]) -> Sequence[tuple[str, int, Attempt]]:
    """Return the attempts of these replicas of one job."""
    async with db.read() as connection:
        return await load_attempts_of(connection, uid, keys)


async def load_attempts(
    connection: Connection, uids: Sequence[UUID]
) -> Mapping[UUID, Sequence[tuple[str, int, Attempt]]]:
    """Return what `of_many` returns, inside the caller's transaction."""
    found: dict[UUID, list[tuple[str, int, Attempt]]] = defaultdict(list)
    for row in await connection.fetch(_ATTEMPTS, uids):
        found[row["job_uid"]].append((row["task"], row["rank"], attempt_from(row)))
    return found


async def load_attempts_of(
    connection: Connection, uid: UUID, keys: Sequence[Rank]
) -> Sequence[tuple[str, int, Attempt]]:
    """Return what `of_replicas` returns, inside the caller's transaction."""
    arrays = [key.task for key in keys], [key.rank for key in keys]
    rows = await connection.fetch(_ATTEMPTS_OF, uid, *arrays)
    return [(row["task"], row["rank"], attempt_from(row)) for row in rows]


def attempt_from(row: Mapping[str, Any]) -> Attempt:
    return codec.load({"number": row["attempt"], **ATTEMPT.read(row)}, Attempt)
