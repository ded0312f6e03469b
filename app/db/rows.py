"""Reading the rows that belong to jobs, for the controller and for the API alike."""

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


_ATTEMPT = ", ".join(codec.ATTEMPT_COLUMNS)
_CONDITIONS = f"""
SELECT job_uid, {", ".join(codec.CONDITION_COLUMNS)}
FROM conditions WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, position
"""  # noqa: S608  the columns are ours
_REPLICAS = f"""
SELECT job_uid, task, rank, pod_name, attempt, {_ATTEMPT}, restarts, disruptions, retry_at, settled, leaving
FROM replicas WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, task, rank
"""  # noqa: S608  the columns are ours
_ATTEMPTS = f"""
SELECT job_uid, task, rank, attempt, {_ATTEMPT}
FROM attempts WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, task, rank, attempt
"""  # noqa: S608  the columns are ours


async def load_conditions(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[Condition]]:
    found: dict[UUID, list[Condition]] = defaultdict(list)
    for row in await connection.fetch(_CONDITIONS, uids):
        found[row["job_uid"]].append(codec.condition_from(row))
    return found


async def load_replicas(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[StoredReplica]]:
    found: dict[UUID, list[StoredReplica]] = defaultdict(list)
    for row in await connection.fetch(_REPLICAS, uids):
        found[row["job_uid"]].append(StoredReplica(replica=_replica(row), pod_name=row["pod_name"]))
    return found


async def load_attempts(
    connection: Connection, uids: Sequence[UUID]
) -> Mapping[UUID, Sequence[tuple[str, int, Attempt]]]:
    """Task, rank and record of every attempt that has ended."""
    found: dict[UUID, list[tuple[str, int, Attempt]]] = defaultdict(list)
    for row in await connection.fetch(_ATTEMPTS, uids):
        found[row["job_uid"]].append((row["task"], row["rank"], codec.attempt_from(row, row["attempt"])))
    return found


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
