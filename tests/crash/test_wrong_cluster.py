"""A database and a cluster that do not belong together: the controller stops, reports it, and changes nothing."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.crash.gateways import client_of, until_ready
from tests.crash.stories import FOREVER, Client, generic_job, serves, task
from tests.support.clusters.cluster import as_gateway, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


@pytest.fixture
def other_cluster(busy_cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """Another cluster that accepts the token of the gateway."""
    token = Cluster.read(as_gateway(busy_cluster.kubeconfig), real=busy_cluster.real).token
    arguments = ("--nodes", "1", f"--token={token}")
    with running_embedded_cluster(tmp_path / "other", *arguments) as cluster:
        yield cluster


async def contents(api: KubeClient, namespace: str = "") -> dict[tuple[str, str, str], str]:
    """Return the uids of all objects that a gateway might change, in all namespaces or in one."""
    found = {}
    for resource in ("pods", "services", "configmaps", "namespaces"):
        for item in (await api.get(f"/api/v1/{resource}")).ok()["items"]:
            metadata = item["metadata"]
            where = metadata.get("namespace", metadata["name"])
            if namespace in ("", where):
                found[resource, where, metadata["name"]] = metadata["uid"]
    return found


async def refuses(client: Client, attempts: Iterator[int]) -> bool:
    """Return whether a submission is refused because of the cluster.

    Each attempt has another name: API processes accept jobs until they read the next heartbeat of the controller.
    """
    manifest = generic_job(f"early-{next(attempts)}", task("worker", "exit 0"))
    answer = await client.http.post(f"/api/v1/namespaces/{client.namespace}/jobs", json=manifest)
    return answer.status_code == 503 and answer.json()["code"] == "WrongCluster"


async def binds(client: Client, other: KubeClient, recover: Callable[[], "subprocess.CompletedProcess[str]"]) -> None:
    """Bind the database to the other cluster. The live job runs there, and the former cluster stays as it was."""
    former = await contents(client.api, client.namespace)
    bound = await asyncio.to_thread(recover)
    assert bound.returncode == 0, bound.stderr
    await until_ready(client.http, 200, "Running")
    pod = f"/api/v1/namespaces/{client.namespace}/pods/moves-worker-0"
    await other.eventually(pod, lambda found: found["status"]["phase"] == "Running", within=240)
    await client.until("moves", "Running")
    history = (await client.http.get(client.path("moves", "history"))).json()["items"]
    assert "ObjectsMissing" in [row["reason"] for row in history]
    assert await contents(client.api, client.namespace) == former


async def test_another_cluster_at_the_same_address_stays_untouched_until_it_is_bound(
    busy_cluster: Cluster,
    other_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    async with kube_proxy(busy_cluster) as proxy, connect(other_cluster) as other:
        (await other.post("/api/v1/namespaces", {"metadata": {"name": crash_namespace}})).ok()
        await other.eventually("/api/v1/namespaces/kube-system", bool)
        kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")
        yielding = STEADY | {"JOBGATE_LEASE_WITHOUT_CONTACT": "1"}
        async with gateway_process(database_url, kubeconfig, tmp_path / "gateway", **yielding) as gateway:
            await gateway.start()
            async with client_of(gateway, crash_api, crash_namespace) as client:
                await client.submit(generic_job("stays", task("worker", FOREVER)))
                await client.submit(generic_job("moves", task("worker", FOREVER)))
                await client.until("stays", "Running")
                await client.until("moves", "Running")
                before = await contents(other)
                proxy.swap(other_cluster)
                await client.act("POST", "stays", "cancel")
                said = await until_ready(client.http, 503, "WrongCluster")
                assert "kube-system" in said
                attempts = count()
                await until(lambda: refuses(client, attempts), what="a submission is refused", within=240)
                assert await contents(other) == before
                assert (await client.status("stays"))["phase"] == "Running"

                settings = {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_KUBECONFIG": str(as_gateway(kubeconfig))}
                recover = partial(jobgate, "recover", "--yes", "--live=requeue", home=tmp_path, **settings)
                refused = await asyncio.to_thread(recover)
                assert refused.returncode == 2
                assert "correct JOBGATE_KUBECONFIG" in refused.stderr
                assert await contents(other) == before

                proxy.swap(busy_cluster)
                await until_ready(client.http, 200, "Running")
                await serves("later", tmp_path).run(client)
                await client.until("stays", "Cancelled")
                assert await contents(other) == before

                proxy.swap(other_cluster)
                await until_ready(client.http, 503, "WrongCluster")
                await binds(client, other, partial(recover, "--cluster"))
