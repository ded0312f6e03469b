"""A controller that hangs without noticing it: its process exits, and another controller takes over."""

import asyncio
import secrets
from pathlib import Path

import asyncpg
import httpx2
import pytest

from app.base.faultpoints import HANG, FaultPoint
from app.running.shutdown import EXIT_STATUS
from tests.crash.gateways import PATIENCE, client_of, until_held
from tests.crash.stories import serves
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

CROWDED = {**STEADY, "JOBGATE_DATABASE_POOL_SIZE": "2", "JOBGATE_OPEN_ACCESS": "false"}
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobgate requests' AND wait_event_type = 'Lock'
"""
GRACE = {"JOBGATE_LEASE_GRACE": "1"}


async def test_a_process_whose_event_loop_is_blocked_exits(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    config = busy_cluster.kubeconfig
    db = await asyncpg.connect(database_url)
    async with (
        gateway_process(database_url, config, tmp_path / "wedged", **GRACE) as wedged,
        gateway_process(database_url, config, tmp_path / "next", **STEADY) as following,
    ):
        wedged.launch({"JOBGATE_FAULT_POINTS": f"{FaultPoint.LEASE_RENEWED}:1:{HANG}"})
        assert await wedged.ended(within=PATIENCE) == EXIT_STATUS
        log = wedged.log.read_text()
        assert "watchdog.exit" in log
        assert "the work under it has not ended" in log
        await following.start()
        await until_held(db, following.pid)
        async with client_of(following, crash_api, crash_namespace) as client:
            await serves("after", tmp_path).run(client)
    await db.close()


async def test_requests_that_wait_for_the_database_do_not_delay_the_controller(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    """Requests hold all connections for requests while they wait for a lock. Jobs still end."""
    config = busy_cluster.kubeconfig
    db, locker = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    async with (
        gateway_process(database_url, config, tmp_path / "crowded", **CROWDED) as crowded,
        gateway_process(database_url, config, tmp_path / "free", JOBGATE_ROLE="api") as free,
    ):
        await asyncio.gather(crowded.start(), free.start())
        epoch = await until_held(db, crowded.pid)
        async with (
            client_of(free, crash_api, crash_namespace) as client,
            httpx2.AsyncClient(base_url=crowded.url, timeout=PATIENCE) as http,
            locker.transaction(),
            asyncio.TaskGroup() as group,
        ):
            await locker.execute("LOCK TABLE api_tokens IN ACCESS EXCLUSIVE MODE")
            asking = [group.create_task(keep_asking(http)) for _ in range(20)]
            await until(
                lambda: db.fetchval(WAITING),
                lambda count: count >= int(CROWDED["JOBGATE_DATABASE_POOL_SIZE"]),
                what="no connection is free",
                within=PATIENCE,
            )
            for number in range(3):
                await serves(f"beside-{number}", tmp_path).run(client)
            assert await db.fetchval(WAITING) == int(CROWDED["JOBGATE_DATABASE_POOL_SIZE"])
            assert await until_held(db, crowded.pid) == epoch
            for task in asking:
                task.cancel()
    await db.close()
    await locker.close()


async def keep_asking(http: httpx2.AsyncClient) -> None:
    """Send requests with tokens that are not cached. Each holds a connection while it waits for the lock."""
    while True:
        token = {"Authorization": f"Bearer jg_{secrets.token_hex(8)}_{secrets.token_hex(16)}"}
        answer = await http.get("/api/v1/jobs", headers=token)
        assert answer.status_code in (401, 503), answer.text
