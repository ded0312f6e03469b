"""One node a session for most tests; a test that kills its node starts its own."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.conformance.node_support import Node, Pods
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.kueue import Queues, queues_of


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


@pytest_asyncio.fixture
async def queues(api: KubeClient, namespace: str) -> AsyncIterator[Queues]:
    async with queues_of(api, namespace) as found:
        yield found


@pytest_asyncio.fixture
async def queue(queues: Queues) -> Queues:
    """A queue `q` with 4 CPUs of the flavor `f`."""
    await queues.add_flavor("f")
    await queues.add_queue("q", {"f": {"cpu": "4"}})
    return queues
