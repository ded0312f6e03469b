"""What the checks of the cluster read of the database: which jobs have objects, and which pods their attempts have."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.db.postgres.engine import Database

# Those whose objects are gone have none in the cluster.
_WITH_OBJECTS: Final = "SELECT uid FROM jobs WHERE uid = ANY($1::uuid[]) AND gone_at IS NULL"
_RECORDED: Final = """
SELECT pod_uid FROM replicas WHERE job_uid = ANY($1::uuid[]) AND pod_uid = ANY($2::text[])
UNION SELECT pod_uid FROM attempts WHERE job_uid = ANY($1::uuid[]) AND pod_uid = ANY($2::text[])
"""
_LIVE: Final = "SELECT uid FROM jobs WHERE NOT quiet AND uid > $1 ORDER BY uid LIMIT $2"
_RUNNING: Final = """
SELECT j.namespace, r.job_uid, r.task, r.rank, r.attempt, r.pod_name, r.pod_uid
FROM jobs AS j JOIN replicas AS r ON r.job_uid = j.uid
WHERE j.uid = ANY($1::uuid[]) AND r.pod_uid IS NOT NULL AND r.outcome IS NULL
AND (r.job_uid, r.task, r.rank) > ($2, $3, $4) ORDER BY r.job_uid, r.task, r.rank LIMIT $5
"""
_INSTALLATION: Final = "SELECT id FROM installation"
_JOBS_AT_ONCE: Final = 50
# A job can have ten thousand replicas.
_PODS_AT_ONCE: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPod:
    """The pod of an attempt that has not ended. Its finalizer keeps it in the cluster."""

    namespace: str
    job_uid: UUID
    task: str
    rank: int
    attempt: int
    pod_name: str | None
    pod_uid: str


async def installation_id(db: Database) -> UUID | None:
    """Return the id of the installation, or None if no process has started yet."""
    async with db.snapshot() as connection:
        found: UUID | None = await connection.fetchval(_INSTALLATION)
    return found


async def find_with_objects(db: Database, uids: Collection[UUID]) -> set[UUID]:
    """Return those of the jobs that exist and may have objects in the cluster."""
    async with db.snapshot() as connection:
        return {row["uid"] for row in await connection.fetch(_WITH_OBJECTS, list(uids))}


async def find_recorded(db: Database, jobs: Collection[UUID], pods: Sequence[str]) -> set[str]:
    """Return those of the pod uids that an attempt of these jobs has."""
    async with db.snapshot() as connection:
        return {row["pod_uid"] for row in await connection.fetch(_RECORDED, list(jobs), pods)}


async def read_running(db: Database) -> AsyncIterator[RecordedPod]:
    """Yield the pods of all attempts that have not ended, of live jobs and of those that are cleaned up."""
    after = UUID(int=0)
    while True:
        async with db.snapshot() as connection:
            jobs = [row["uid"] for row in await connection.fetch(_LIVE, after, _JOBS_AT_ONCE)]
        async for pod in _read_running(db, jobs):
            yield pod
        if len(jobs) < _JOBS_AT_ONCE:
            return
        after = jobs[-1]


async def _read_running(db: Database, jobs: Sequence[UUID]) -> AsyncIterator[RecordedPod]:
    last: tuple[UUID, str, int] = UUID(int=0), "", -1
    while True:
        async with db.snapshot() as connection:
            rows = await connection.fetch(_RUNNING, jobs, *last, _PODS_AT_ONCE)
        for row in rows:
            yield RecordedPod(**row)
        if len(rows) < _PODS_AT_ONCE:
            return
        last = rows[-1]["job_uid"], rows[-1]["task"], rows[-1]["rank"]
