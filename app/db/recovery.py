"""What `jobgate recover` reads of jobs, and how a database continues after one with a longer history.

The feed, the versions of jobs and the epoch of the lease of a restored database repeat values that clients and the
cluster have seen. `continue_after` moves them beyond those.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from app.db.feed import entries
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.db.postgres.queries import in_namespaces, namespace_arguments
from app.domain.access.namespaces import NamespaceSet
from app.domain.plan import Rank
from app.domain.recovery.differences import KnownJob, KnownReplica
from app.domain.vocabulary import TERMINAL_PHASES, JobPhase

_JOB: Final = """
SELECT uid, namespace, name, kind, phase, COALESCE(status -> 'anchors', '[]') AS anchors FROM jobs
"""
_BY_UID: Final = f"{_JOB} WHERE uid = ANY($1::uuid[])"
# `ended` and `quiet` are indexed; the order lets the caller continue after a uid.
_LIVE: Final = f"""
{_JOB} WHERE NOT quiet AND phase <> ALL($2::text[]) AND ($1::uuid IS NULL OR uid > $1) AND {in_namespaces(4)}
ORDER BY uid LIMIT $3
"""
_REPLICAS: Final = """
SELECT job_uid, task, rank, attempt, pod_name, pod_uid IS NOT NULL OR attempt > 1 AS had_pod
FROM replicas WHERE job_uid = ANY($1::uuid[])
"""
_SAMPLES: Final = "SELECT uid FROM samples WHERE uid = ANY($1::uuid[])"
_TERMINAL: Final = sorted(TERMINAL_PHASES)
# More than any job changes between a backup and its restore. Each version makes an ETag, which is not used twice.
_VERSIONS: Final = 1_000_000
_LOCK_LIVE: Final = """
SELECT uid FROM jobs WHERE NOT quiet AND ($1::uuid IS NULL OR uid > $1) ORDER BY uid LIMIT $2 FOR UPDATE
"""
_SKIP_VERSIONS: Final = "UPDATE jobs SET version = version + $2 WHERE uid = ANY($1::uuid[])"
_SKIP_SAMPLE_VERSIONS: Final = "UPDATE samples SET version = version + $1"
_JOBS_AT_ONCE: Final = 500
_ENTRIES_AT_ONCE: Final = 5_000
# A new epoch ends what continues at a position, and what processes keep in memory. The time makes it differ from those
# that this installation had after the backup.
_CONTINUE_FEED: Final = """
UPDATE feed SET epoch = GREATEST(epoch + 1, extract(epoch FROM clock_timestamp())::bigint),
    last = GREATEST(last, $1), first = GREATEST(last, $1) + 1
"""
_FORGET_ENTRIES: Final = "DELETE FROM job_events WHERE seq IS NOT NULL"
_BIND: Final = "UPDATE installation SET cluster_uid = $1 WHERE cluster_uid IS DISTINCT FROM $1 RETURNING 1"
# The namespaces of another cluster have other uids, and they are no later lives of those that objects are stored of.
_FORGET_NAMESPACES: Final = "UPDATE cluster_namespaces SET names = NULL, uids = '{}'"


async def known_jobs(db: Database, uids: Sequence[UUID]) -> dict[str, KnownJob]:
    """Return those of the jobs that the database knows."""
    async with db.snapshot() as connection:
        return await _read_known(connection, await connection.fetch(_BY_UID, uids))


async def live_jobs(db: Database, served: NamespaceSet, after: UUID | None) -> dict[str, KnownJob]:
    """Return the next live jobs in order of uid. The result is empty after the last one."""
    async with db.snapshot() as connection:
        arguments = (after, _TERMINAL, _JOBS_AT_ONCE, *namespace_arguments(served))
        return await _read_known(connection, await connection.fetch(_LIVE, *arguments))


async def _read_known(connection: Any, rows: Sequence[Any]) -> dict[str, KnownJob]:
    replicas: dict[UUID, dict[Rank, KnownReplica]] = defaultdict(dict)
    had_pods: set[UUID] = set()
    for row in await connection.fetch(_REPLICAS, [row["uid"] for row in rows]):
        key, attempt = Rank(row["task"], row["rank"]), row["attempt"]
        replicas[row["job_uid"]][key] = KnownReplica(attempt=attempt, pod_name=row["pod_name"])
        if row["had_pod"]:
            had_pods.add(row["job_uid"])
    return {str(row["uid"]): _job(row, replicas.get(row["uid"], {}), row["uid"] in had_pods) for row in rows}


def _job(row: Any, replicas: Mapping[Rank, KnownReplica], had_pods: bool) -> KnownJob:  # noqa: FBT001  of one caller
    return KnownJob(
        uid=str(row["uid"]),
        namespace=row["namespace"],
        name=row["name"],
        kind=row["kind"],
        phase=JobPhase(row["phase"]),
        anchors=row["anchors"],
        replicas=replicas,
        had_pods=had_pods,
    )


async def known_samples(db: Database, uids: Sequence[UUID]) -> set[str]:
    """Return the uids of those of the SampleSets that the database knows."""
    async with db.read() as connection:
        return {str(row["uid"]) for row in await connection.fetch(_SAMPLES, uids)}


async def skip_versions(db: Database, lease: Lease) -> None:
    """Increase the versions of all objects that can change, so that no version means two states of an object.

    Raises:
        LeaseLost: another process holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_SKIP_SAMPLE_VERSIONS, _VERSIONS)
    after: UUID | None = None
    while True:
        async with db.begin() as connection:
            await leases.fence(connection, lease)
            uids = [row["uid"] for row in await connection.fetch(_LOCK_LIVE, after, _JOBS_AT_ONCE)]
            await connection.execute(_SKIP_VERSIONS, uids, _VERSIONS)
        if len(uids) < _JOBS_AT_ONCE:
            return
        after = uids[-1]


async def continue_after(db: Database, lease: Lease, position: int, cluster_uid: str, now: datetime) -> None:
    """Continue the feed beyond the position, under a new epoch, and bind the database to the cluster.

    Raises:
        LeaseLost: another process holds the lease.
    """
    # In batches, so that the transaction below deletes only what was numbered since.
    while await _forget_entries(db, lease, now):
        pass
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_CONTINUE_FEED, position)
        await connection.execute(_FORGET_ENTRIES)
        if await connection.fetchval(_BIND, cluster_uid):
            await connection.execute(_FORGET_NAMESPACES)


async def _forget_entries(db: Database, lease: Lease, now: datetime) -> int:
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        before = now + timedelta(days=1)
        return await entries.forget_oldest(connection, before=before, keep=0, limit=_ENTRIES_AT_ONCE)
