"""A standby that follows asynchronously is promoted, as docs/recovery.md describes: what is lost, and how it returns.

The former primary comes back with a controller of its own, and changes nothing.
"""

import asyncio
import secrets
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.db.postgres.migrations import migrate
from tests.crash.gateways import PATIENCE, client_of, until_ready
from tests.crash.stories import FOREVER, Client, generic_job, serves, task
from tests.crash.test_postgres_loss import database, of_both, page
from tests.crash.test_recovery import Recovering, noted, pod_uids, waiting
from tests.crash.test_wrong_cluster import contents, refuses
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import STEADY, gateway_process, insist
from tests.support.postgres import connected, execute
from tests.support.verification import assert_invariants
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

# A controller that is stopped gives its lease to the recovery.
YIELDING = STEADY | {"JOBGATE_LEASE_WITHOUT_CONTACT": "1"}
KEY = secrets.token_hex(8)


async def caught_up(primary: str, standby: str) -> None:
    """Wait until the standby has everything that the primary has committed by now."""
    async with connected(primary) as connection:
        position = str(await connection.fetchval("SELECT pg_current_wal_lsn()::text"))
    async with connected(standby) as connection:
        reached = f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"
        await until(lambda: connection.fetchval(reached), what="the standby has caught up", within=PATIENCE)


async def stop_receiving(standby: str) -> None:
    """Cut the standby off from its primary, which goes on to acknowledge commits."""
    await execute(standby, "ALTER SYSTEM SET primary_conninfo = ''")
    await execute(standby, "SELECT pg_reload_conf()")
    async with connected(standby) as connection:
        receivers = "SELECT count(*) FROM pg_stat_wal_receiver"
        await until(lambda: connection.fetchval(receivers), lambda found: found == 0, within=PATIENCE)


async def submit_lost(client: Client) -> httpx2.Response:
    """Submit the job that is lost, each time with the same idempotency key, as a client that repeats its request."""
    body, key = generic_job("lost", task("worker", FOREVER)), {"Idempotency-Key": KEY}
    return await insist(client.http, "POST", f"/api/v1/namespaces/{client.namespace}/jobs", json=body, headers=key)


async def works_without_the_standby(client: Client, directory: Path, primary: str) -> str:
    """Let jobs end, and accept one, that the standby does not learn of. Return the uid of the accepted one."""
    (directory / "go").touch()
    accepted = await submit_lost(client)
    assert accepted.status_code == 201
    await client.until("lost", "Running")
    await client.until("ends", "Succeeded")
    await noted(client.api, primary)
    uid: str = accepted.json()["uid"]
    return uid


async def is_stopped(client: Client, recovering: Recovering) -> None:
    """What was acknowledged is lost, and nothing in the cluster changes until the recovery."""
    before = await contents(client.api, client.namespace)
    await until_ready(client.http, 503, "WrongCluster")
    assert (await client.http.get(client.path("lost"))).status_code == 404
    attempts = count()
    await until(lambda: refuses(client, attempts), what="a submission is refused", within=PATIENCE)
    report = await recovering.found()
    # Jobs that the API has accepted before it knew of the stop wait for the controller.
    shown = {job["name"]: job["difference"] for job in report["jobs"] if job["difference"] != "Unstarted"}
    assert shown == {"lost": "Lost", "ends": "Ended"}
    assert await contents(client.api, client.namespace) == before


async def is_recovered(client: Client, recovering: Recovering, directory: Path, lost: str) -> None:
    pods = await pod_uids(client.api, client.namespace)
    await page("Recover", directory, **recovering.environment)
    await until_ready(client.http, 200, "Running")
    assert (await client.until("ends", "Succeeded"))["reason"] == "EndedInCluster"
    path = f"/api/v1/namespaces/{client.namespace}/pods"
    await client.api.eventually(path, lambda found: pods["lost-worker-0"] not in uids_of(found), within=PATIENCE)
    repeated = await submit_lost(client)
    assert repeated.status_code == 201
    assert repeated.json()["uid"] != lost
    await client.until("lost", "Running")
    after = await pod_uids(client.api, client.namespace)
    assert after["known-worker-0"] == pods["known-worker-0"]
    history = (await client.http.get(client.path("known", "history"))).json()["items"]
    assert not [row for row in history if row["attempt"] not in (None, 1)], "no job runs twice"


def uids_of(found: dict[str, Any]) -> set[str]:
    return {item["metadata"]["uid"] for item in found["items"]}


async def stays_away(client: Client, former: Client) -> None:
    """The controller of the former primary finds the mark of the new one, and its API accepts no jobs."""
    before = await contents(client.api, client.namespace)
    assert "another copy of this database has worked on this cluster" in await until_ready(former.http, 503, "copy")
    attempts = count()
    await until(lambda: refuses(former, attempts), what="a submission is refused", within=PATIENCE)
    assert await contents(client.api, client.namespace) == before
    await until_ready(client.http, 200, "Running")


async def test_what_an_asynchronous_standby_does_not_have_is_shown_and_recovered(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, tmp_path: Path
) -> None:
    config, first, second = busy_cluster.kubeconfig, tmp_path / "first", tmp_path / "second"
    second.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        primary = await stack.enter_async_context(database(first))
        await asyncio.to_thread(migrate, primary.url)
        await page("Standby", tmp_path, PRIMARY=primary.url, PGDATA=str(second / "pgdata"))
        standby = await stack.enter_async_context(database(second))
        both = of_both(primary.url, standby.url)
        gateway = await stack.enter_async_context(gateway_process(both, config, tmp_path / "gateway", **YIELDING))
        await gateway.start()
        client = await stack.enter_async_context(client_of(gateway, crash_api, crash_namespace))
        await client.submit(generic_job("known", task("worker", FOREVER)))
        await client.submit(generic_job("ends", task("worker", waiting(tmp_path, "exit 0"))))
        await client.until("known", "Running")
        await client.until("ends", "Running")
        await caught_up(primary.url, standby.url)
        await stop_receiving(standby.url)
        lost = await works_without_the_standby(client, tmp_path, primary.url)
        await primary.kill()
        await page("Promote", tmp_path, STANDBY=standby.url)
        recovering = Recovering(both, config, tmp_path)
        await is_stopped(client, recovering)
        await is_recovered(client, recovering, tmp_path, lost)

        # The former primary comes back, and its clients have brought it further than the new one.
        await primary.start()
        await execute(primary.url, "UPDATE feed SET last = last + 1000000, first = last + 1000001")
        await execute(primary.url, "UPDATE leases SET epoch = epoch + 1000")
        own = await stack.enter_async_context(gateway_process(primary.url, config, tmp_path / "former", **YIELDING))
        await own.start()
        former = await stack.enter_async_context(client_of(own, crash_api, crash_namespace))
        await stays_away(client, former)
        await own.stop()
        await primary.stop()
        await serves("later", tmp_path).run(client)
        await assert_invariants(standby.url, busy_cluster)
