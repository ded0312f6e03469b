"""PostgreSQL is restored to a point in time, or fails over to its standby under load: nothing acknowledged is lost.

The commands are those of docs/recovery.md.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from app.base.cancellation import TaskGroup
from app.db.jobs.submit import submit
from app.db.objects.idempotency import IdempotencyKey, Replayed
from app.db.objects.submission import Submitted
from app.db.postgres.engine import Database
from app.db.postgres.migrations import migrate
from app.embedded_postgres.server import EmbeddedPostgres
from tests.crash.gateways import PATIENCE
from tests.crash.stories import FOREVER, generic_job, task
from tests.db.factories import new_job
from tests.support.clusters.kube import Cluster
from tests.support.gateways.process import gateway_process, insist
from tests.support.page_commands import run_commands
from tests.support.postgres import connected
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

SENDS = {"max_wal_senders": "4", "shared_buffers": "32MB", "max_wal_size": "128MB"}
CLIENTS = 8
ACKNOWLEDGED = 60  # jobs before the primary dies, and as many after that


async def page(heading: str, directory: Path, **environment: str) -> str:
    return await asyncio.to_thread(run_commands, "recovery.md", heading, directory, **environment)


@asynccontextmanager
async def database(directory: Path) -> AsyncIterator[EmbeddedPostgres]:
    async with EmbeddedPostgres(directory, settings=SENDS) as server:
        yield server


async def job_names(url: str) -> set[str]:
    async with connected(url) as connection:
        return {row["name"] for row in await connection.fetch("SELECT name FROM jobs")}


async def job_uids(url: str) -> set[str]:
    async with connected(url) as connection:
        return {row["uid"] for row in await connection.fetch("SELECT uid::text FROM jobs")}


async def store(url: str, name: str) -> bool:
    """Submit a job with an idempotency key of its own. Return whether it is new: a repetition finds the stored one."""
    db = await Database.open(url, pool_size=1)
    try:
        key = IdempotencyKey(scope="POST /jobs", key=name, fingerprint="", answer=b"")
        (answer,) = await submit(db, [new_job(name, names=(), idempotency=key)])
        assert isinstance(answer, Submitted | Replayed)
        return isinstance(answer, Submitted)
    finally:
        await db.close()


async def test_archived_wal_restores_a_point_in_time(tmp_path: Path, postgres_directory: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    async with database(postgres_directory) as server:
        known = {"JOBGATE_DATABASE_URL": server.url, "ARCHIVE": str(archive)}
        await asyncio.to_thread(migrate, server.url)
        await page("Archive the WAL", tmp_path, **known)
        await server.stop()
        await server.start()
        await store(server.url, "before-the-base")
        await page("Base backup", tmp_path, **known)
        await store(server.url, "before-the-time")
        async with connected(server.url) as connection:
            wanted = str(await connection.fetchval("SELECT clock_timestamp()"))
        await store(server.url, "after-the-time")
        async with connected(server.url) as connection:
            segment = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
        await until((archive / segment).exists, what="the segment is archived", within=PATIENCE)
    restored = tmp_path / "restored"
    restored.mkdir(mode=0o700)
    await page("Restore a point in time", tmp_path, ARCHIVE=str(archive), PGDATA=str(restored / "pgdata"), TIME=wanted)
    async with database(restored) as server:
        await until(lambda: is_primary(server.url), what="the restored server accepts writes", within=PATIENCE)
        assert await job_names(server.url) == {"before-the-base", "before-the-time"}
        # Clients that have no answer repeat their requests, whether their jobs were committed before the time or after.
        assert not await store(server.url, "before-the-time")
        assert await store(server.url, "after-the-time")
        assert await job_names(server.url) == {"before-the-base", "before-the-time", "after-the-time"}


async def is_primary(url: str) -> bool:
    async with connected(url) as connection:
        return not await connection.fetchval("SELECT pg_is_in_recovery()")


def of_both(primary: str, standby: str) -> str:
    """Return the URL that names both servers."""
    hosts = [parse_qs(urlsplit(url).query)["host"][0] for url in (primary, standby)]
    query = f"host={','.join(hosts)}&port=5432,5432&target_session_attrs=read-write"
    return f"postgresql://jobgate@/jobgate?{query}"


class Load:
    """Clients that submit jobs, each with a key that it repeats until it is answered."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._namespace = namespace
        self.acknowledged: dict[str, str] = {}  # uids by idempotency key

    async def run(self) -> None:
        async with httpx2.AsyncClient(base_url=self._url, timeout=30) as http, TaskGroup() as group:
            for client in range(CLIENTS):
                group.create_task(self._submit(http, client))

    async def _submit(self, http: httpx2.AsyncClient, client: int) -> None:
        while len(self.acknowledged) < 2 * ACKNOWLEDGED:
            key = secrets.token_hex(8)
            # The controller records that such a job is paused, and creates no pods.
            paused = {"pause": {"enabled": True}}
            manifest = generic_job(f"job-{client}-{key}", task("worker", FOREVER), runMode=paused)
            path = f"/api/v1/namespaces/{self._namespace}/jobs"
            answer = await insist(http, "POST", path, json=manifest, headers={"Idempotency-Key": key})
            assert answer.status_code in (200, 201), answer.text
            self.acknowledged[key] = answer.json()["uid"]

    async def has(self, number: int) -> None:
        await until(lambda: len(self.acknowledged) >= number, what=f"{number} jobs are stored", within=PATIENCE)


async def stored_jobs(url: str) -> dict[str, int]:
    """Return the number of jobs by idempotency key, which their names contain."""
    names = [name.rpartition("-")[2] for name in await job_names(url)]
    return {key: names.count(key) for key in names}


async def feed_has_no_gap(url: str) -> bool:
    async with connected(url) as connection:
        row = await connection.fetchrow(
            "SELECT count(*) FILTER (WHERE seq IS NULL) AS waiting, count(seq) AS numbered, max(seq) AS last"
            " FROM job_events"
        )
    return bool(row["waiting"] == 0 and row["numbered"] == row["last"])


async def has_no_queued_job(url: str) -> bool:
    async with connected(url) as connection:
        return not await connection.fetchval("SELECT count(*) FROM jobs WHERE phase <> 'Paused'")


async def test_a_synchronous_standby_loses_nothing_that_was_acknowledged(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir(mode=0o700)
    async with database(first) as primary:
        await asyncio.to_thread(migrate, primary.url)
        await page("Standby", tmp_path, PRIMARY=primary.url, PGDATA=str(second / "pgdata"))
        async with database(second) as standby:
            await page("Wait for the standby", tmp_path, PRIMARY=primary.url)
            both = of_both(primary.url, standby.url)
            async with gateway_process(both, cluster.kubeconfig, tmp_path / "gateway") as gateway:
                await gateway.start()
                load = Load(gateway.url, namespace)
                async with TaskGroup() as group:
                    group.create_task(load.run())
                    await load.has(ACKNOWLEDGED)
                    await primary.kill()
                    before = len(load.acknowledged)
                    await page("Promote", tmp_path, STANDBY=standby.url)
                assert len(load.acknowledged) > before >= ACKNOWLEDGED
                stored = await stored_jobs(standby.url)
                assert {key: stored.get(key, 0) for key in load.acknowledged} == dict.fromkeys(load.acknowledged, 1)
                await until(lambda: has_no_queued_job(standby.url), what="the controller continues", within=PATIENCE)
                await until(lambda: feed_has_no_gap(standby.url), what="the feed is complete", within=PATIENCE)
                assert await job_uids(standby.url) >= set(load.acknowledged.values())
