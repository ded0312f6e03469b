"""A cluster with a node for the gateways that these tests kill, and a client of it."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.clusters.cluster import REAL_CLUSTER, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.nodes import some_node
from tests.support.gateways.process import GatewayProcess, gateway_process


@pytest.fixture(scope="session")
def busy_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The control plane under test with a node that runs commands."""
    directory = tmp_path_factory.mktemp("crash")
    if REAL_CLUSTER in os.environ:
        cluster: Cluster = request.getfixturevalue("cluster")
        with some_node(cluster, directory / "node"):
            yield cluster
        return
    with (
        running_embedded_cluster(directory / "cluster", "--nodes", "0", "--bookmark-period", "1") as own,
        some_node(own, directory / "node"),
    ):
        yield own


@pytest_asyncio.fixture
async def crash_api(busy_cluster: Cluster) -> AsyncIterator[KubeClient]:
    async with connect(busy_cluster) as client:
        yield client


@pytest_asyncio.fixture
async def crash_namespace(crash_api: KubeClient) -> AsyncIterator[str]:
    name = f"crash-{secrets.token_hex(4)}"
    (await crash_api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    await crash_api.eventually(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    yield name
    await crash_api.delete(f"/api/v1/namespaces/{name}")


@pytest_asyncio.fixture
async def gateway(busy_cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    """A gateway that runs, with a database of its own."""
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway") as process:
        await process.start()
        yield process
