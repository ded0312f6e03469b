"""Reading the rows that belong to jobs, for the controller and for the API alike."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.db import codec
from app.db.engine import Connection
from app.domain.plan import Rank
from app.domain.status.records import Attempt, Condition, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """A replica and the name of its pod, where the controller has told it."""

    replica: Replica
    pod_name: str | None


# Rows that are decoded before others have their turn: about ten milliseconds.
_ROWS_A_TURN = 500
_ATTEMPT = ", ".join(codec.ATTEMPT_COLUMNS)
_CONDITIONS = f"""
SELECT job_uid, {", ".join(codec.CONDITION_COLUMNS)}
FROM conditions WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, position
"""  # noqa: S608  the columns are ours
_REPLICAS = f"""
SELECT job_uid, task, rank, pod_name, attempt, {_ATTEMPT}, restarts, disruptions, retry_at, settled, leaving
FROM replicas WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, task, rank
"""  # noqa: S608  the columns are ours
_REPLICA_PAGE = f"""
SELECT job_uid, task, rank, pod_name, attempt, {_ATTEMPT}, restarts, disruptions, retry_at, settled, leaving
FROM replicas
WHERE job_uid = $1 AND ($2::text IS NULL OR task = $2) AND ($3::int IS NULL OR rank = $3)
  AND (cardinality($4::text[]) = 0 OR phase = ANY($4::text[]))
ORDER BY task, rank OFFSET $5 LIMIT $6
"""  # noqa: S608  the columns are ours
_ATTEMPTS = f"""
SELECT job_uid, task, rank, attempt, {_ATTEMPT}
FROM attempts WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, task, rank, attempt
"""  # noqa: S608  the columns are ours
_ATTEMPTS_OF = f"""
SELECT job_uid, task, rank, attempt, {_ATTEMPT}
FROM attempts JOIN unnest($2::text[], $3::int[]) AS w(task, rank) USING (task, rank)
WHERE job_uid = $1 ORDER BY task, rank, attempt
"""  # noqa: S608  the columns are ours


async def load_conditions(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[Condition]]:
    found: dict[UUID, list[Condition]] = defaultdict(list)
    for row in await connection.fetch(_CONDITIONS, uids):
        found[row["job_uid"]].append(codec.condition_from(row))
    return found


async def load_replicas(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[StoredReplica]]:
    found: dict[UUID, list[StoredReplica]] = defaultdict(list)
    for place, row in enumerate(await connection.fetch(_REPLICAS, uids)):
        found[row["job_uid"]].append(_stored_replica(row))
        if place % _ROWS_A_TURN == 0:
            await asyncio.sleep(0)
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
    """Replicas of one job in order of task and rank."""
    rows = await connection.fetch(_REPLICA_PAGE, uid, task, rank, [str(phase) for phase in phases], start, limit)
    return [_stored_replica(row) for row in rows]


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


def _stored_replica(row: Mapping[str, Any]) -> StoredReplica:
    return StoredReplica(replica=_replica(row), pod_name=row["pod_name"])


def _replica(row: Mapping[str, Any]) -> Replica:
    return Replica(
        key=Rank(row["task"], row["rank"]),
        attempt=codec.attempt_from(row, row["attempt"]),
        restarts=row["restarts"],
        disruptions=row["disruptions"],
        retry_at=row["retry_at"],
        settled=row["settled"],
        leaving=row["leaving"],
    )
