"""One embedded API server for the session, and a harness for each test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.loops.harness import Harness, a_harness
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster

# Nobody renews the heartbeats of nodes that tests make, so the node controller must not give these nodes up.
ARGUMENTS = ("--nodes", "0", "--node-monitor-grace", "3600", "--bookmark-period", "1", "--pod-groups")


@pytest.fixture(scope="session")
def unattended_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with scheduler and controllers, but without a node agent."""
    with running_embedded_cluster(tmp_path_factory.mktemp("unattended-cluster"), *ARGUMENTS) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def harness(unattended_cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[Harness]:
    async with a_harness(unattended_cluster, database_url, tmp_path) as made:
        yield made
