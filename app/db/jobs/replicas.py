"""The stored replicas of jobs, sorted by task and rank."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from app.db.jobs.attempts import ATTEMPT, ATTEMPT_KEY, attempt_from
from app.db.postgres.columns import columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import any_length
from app.domain.plan import Rank
from app.domain.status.records import Replica
from app.domain.vocabulary import ReplicaPhase
from app.fairness.share import next_slice
from app.models.replicas import replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """A replica and the name of its pod. The name is None until the controller has stored it."""

    replica: Replica
    pod_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFilter:
    """Selects replicas of a job. None and an empty sequence match every replica."""

    task: str | None = None
    rank: int | None = None
    phases: Sequence[ReplicaPhase] = ()


# Rows that are decoded before other requests run: about 1 ms.
_DECODED_AT_ONCE: Final = 50
REPLICA: Final = record_columns(replicas, Replica, elsewhere=["key", "attempt"])
_COLUMNS: Final = ATTEMPT_KEY + columns(replicas, "pod_name") + ATTEMPT + REPLICA
_REPLICAS: Final = f"""
SELECT {_COLUMNS} FROM replicas WHERE job_uid = ANY({any_length("$1::uuid[]")}) ORDER BY job_uid, task, rank
"""  # noqa: S608  constants
# OFFSET skips only replicas of one job, whose number is limited.
_REPLICA_PAGE: Final = f"""
SELECT {_COLUMNS} FROM replicas
WHERE job_uid = $1 AND ($2::text IS NULL OR task = $2) AND ($3::int IS NULL OR rank = $3)
  AND (cardinality($4::text[]) = 0 OR phase = ANY($4::text[]))
ORDER BY task, rank OFFSET $5 LIMIT $6
"""  # noqa: S608  constants


async def of(db: Database, uid: UUID) -> Sequence[StoredReplica]:
    return (await of_many(db, [uid])).get(uid, ())


async def of_many(db: Database, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[StoredReplica]]:
    """Return the replicas of each job. The result has no entry for a job without replicas."""
    async with db.read() as connection:
        return await load_replicas(connection, uids)


async def page(db: Database, uid: UUID, where: ReplicaFilter, *, start: int, limit: int) -> Sequence[StoredReplica]:
    """Return a page of the replicas of a job that match the filter: at most `limit`, from the index `start` on."""
    async with db.read() as connection:
        return await load_replica_page(connection, uid, where.task, where.rank, where.phases, start, limit)


async def task_sizes(db: Database, uid: UUID) -> dict[str, int]:
    """Return the number of stored replicas of each task that has any."""
    statement = "SELECT task, count(*) AS size FROM replicas WHERE job_uid = $1 GROUP BY task ORDER BY task"
    async with db.read() as connection:
        return {row["task"]: row["size"] for row in await connection.fetch(statement, uid)}


async def load_replicas(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[StoredReplica]]:
    found: dict[UUID, list[StoredReplica]] = defaultdict(list)
    rows = await connection.fetch(_REPLICAS, uids)
    for row, stored in zip(rows, await _decode_replicas(rows), strict=True):
        found[row["job_uid"]].append(stored)
    return found


async def load_replica_page(
    connection: Connection,
    uid: UUID,
    task: str | None,
    rank: int | None,
    phases: Sequence[str],
    start: int,
    limit: int,
) -> Sequence[StoredReplica]:
    """Return what `page` returns, inside the caller's transaction."""
    rows = await connection.fetch(_REPLICA_PAGE, uid, task, rank, [str(phase) for phase in phases], start, limit)
    return await _decode_replicas(rows)


async def _decode_replicas(rows: Sequence[Mapping[str, Any]]) -> list[StoredReplica]:
    decoded = []
    for number, row in enumerate(rows, 1):
        decoded.append(replica_from(row))
        if number % _DECODED_AT_ONCE == 0:
            await next_slice()
    return decoded


def replica_from(row: Mapping[str, Any]) -> StoredReplica:
    replica = Replica(key=Rank(row["task"], row["rank"]), attempt=attempt_from(row), **REPLICA.read(row))
    return StoredReplica(replica=replica, pod_name=row["pod_name"])
