"""Two controllers, one of which cannot reach its API server: the other one leads, and neither takes the lease in vain.

old ──▶ proxy that is frozen, refuses, or leads to another cluster ──▶ API server ◀── new
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.crash.gateways import PATIENCE, client_of, until_held
from tests.crash.stories import FOREVER, generic_job, serves, task
from tests.support.clusters.cluster import as_gateway, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kube_proxy import KubeProxy, kube_proxy
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

# A status is stale after 3 s, and the lease is given away after twice that.
QUICK_CONTACT = STEADY | {"JOBGATE_STALE_AFTER": "3", "JOBGATE_REQUEST_TIMEOUT": "1"}

Fault = Callable[[KubeProxy], None]


@asynccontextmanager
async def two_controllers(
    old: Path, new: Path, database_url: str, directory: Path
) -> AsyncIterator[tuple[GatewayProcess, GatewayProcess, Any]]:
    """Yield the process that holds the lease, the one that waits, and a connection to their database."""
    db = await asyncpg.connect(database_url)
    async with (
        gateway_process(database_url, old, directory / "old", **QUICK_CONTACT) as first,
        gateway_process(database_url, new, directory / "new", **QUICK_CONTACT) as second,
    ):
        await first.start()
        await until_held(db, first.pid)
        await second.start()
        yield first, second, db
    await db.close()


async def until_state(db: Any, state: str) -> None:
    await until(
        lambda: db.fetchval("SELECT state FROM heartbeats"),
        lambda found: found == state,
        what=f"a heartbeat with {state}",
        within=PATIENCE,
    )


@pytest.mark.parametrize("fault", [KubeProxy.hang, KubeProxy.refuse], ids=["silent", "refused"])
async def test_a_controller_without_contact_gives_its_lease_to_a_standby_with_contact(
    fault: Fault, busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    async with kube_proxy(busy_cluster) as proxy:
        config = proxy.kubeconfig(tmp_path / "kubeconfig")
        async with (
            two_controllers(config, busy_cluster.kubeconfig, database_url, tmp_path) as (old, new, db),
            client_of(new, crash_api, crash_namespace) as client,
        ):
            await client.submit(generic_job("runs", task("worker", FOREVER)))
            await client.until("runs", "Running")
            fault(proxy)
            epoch = await until_held(db, new.pid)
            await client.submit(serves("served", tmp_path).manifest)
            await client.until("served", "Succeeded")
            assert (await client.status("runs"))["phase"] == "Running"
            proxy.heal()
            # The former holder reaches the cluster again, and waits as any standby.
            await until(
                lambda: "controller.lease_given_away" in old.log.read_text(), what="a log line", within=PATIENCE
            )
            await client.act("POST", "runs", "cancel")
            await client.until("runs", "Cancelled")
            assert await until_held(db, new.pid) == epoch


async def test_a_controller_on_another_cluster_gives_its_lease_to_one_on_the_right_cluster(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    token = Cluster.read(as_gateway(busy_cluster.kubeconfig), real=busy_cluster.real).token
    with running_embedded_cluster(tmp_path / "other", "--nodes", "1", f"--token={token}") as other:
        async with kube_proxy(busy_cluster) as proxy:
            config = proxy.kubeconfig(tmp_path / "kubeconfig")
            async with two_controllers(config, busy_cluster.kubeconfig, database_url, tmp_path) as (_, new, db):
                proxy.swap(other)
                await until_held(db, new.pid)
                async with client_of(new, crash_api, crash_namespace) as client:
                    await client.submit(serves("served", tmp_path).manifest)
                    await client.until("served", "Succeeded")


async def test_two_controllers_without_contact_keep_one_term(
    busy_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    async with kube_proxy(busy_cluster) as proxy:
        config = proxy.kubeconfig(tmp_path / "kubeconfig")
        async with two_controllers(config, config, database_url, tmp_path) as (old, new, db):
            epoch = await until_held(db, old.pid)
            proxy.refuse()
            await until_state(db, "Unreachable")
            # The standby has tried to reach the cluster for longer than the limit.
            await until(
                lambda: new.log.read_text().count("cluster.not_reached") > 4,
                what="the standby does not reach the cluster",
                within=PATIENCE,
            )
            assert await until_held(db, old.pid) == epoch
            proxy.heal()
            await until_state(db, "Running")
            # The standby may reach the cluster first, and the lease then moves to it once.
            assert await db.fetchval("SELECT epoch FROM leases") <= epoch + 1
