"""One node a session for most tests; a test that kills its node starts its own."""

import asyncio
from collections.abc import Iterator

import pytest
import pytest_asyncio

from tests.conformance.node_support import Node, Pods
from tests.support.clusters.kube import Cluster, KubeClient, connect


@pytest.fixture(scope="session")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    started = Node(cluster, tmp_path_factory.mktemp("node")).start()
    yield started
    started.stop()
    asyncio.run(_remove(cluster, started))


async def _remove(cluster: Cluster, node: Node) -> None:
    async with connect(cluster) as api:
        await node.remove(api)


@pytest_asyncio.fixture
async def minor(api: KubeClient) -> int:
    """The minor version of the cluster. The embedded one is 1.36; a newer one differs where a test says so."""
    return int((await api.get("/version")).ok()["minor"])


@pytest.fixture
def pods(api: KubeClient, namespace: str, node: Node) -> Pods:
    return Pods(api, namespace, node)
