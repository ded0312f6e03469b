"""A cluster without nodes for each module, and the controller of sample sets on it."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.loops.cache.stage import QUIET_CLUSTER, Stage, a_stage
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_embedded_cluster(tmp_path_factory.mktemp("own-cluster"), *QUIET_CLUSTER) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def stage(own_cluster: Cluster, database_url: str) -> AsyncIterator[Stage]:
    async with a_stage(own_cluster, database_url) as made:
        yield made
