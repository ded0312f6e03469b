"""Most tests share one gateway. A test that stops or configures its gateway starts its own.

JOBGATE_TEST_KUBECONFIG=<file>          the control plane under test, as its admin; by default the embedded one
JOBGATE_TEST_GATEWAY_KUBECONFIG=<file>  the credentials of the gateway there; by default those of the test
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from app.demo import player, sample_story
from app.running.dev import RUNTIME_IMAGE
from tests.e2e.user import User
from tests.support.clusters.cluster import REAL_CLUSTER, as_gateway, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.nodes import some_node
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process
from tests.support.postgres import fresh_database


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster under test, with a node that runs commands."""
    directory = tmp_path_factory.mktemp("e2e")
    if given := os.environ.get(REAL_CLUSTER):
        real = Cluster.read(Path(given), real=True)
        with some_node(real, directory / "node"):
            yield real
        return
    with running_embedded_cluster(directory / "cluster", "--nodes", "1", "--bookmark-period", "1") as embedded:
        yield embedded


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give examples more time than the demo does, because all tests share the cores of the machine."""
    monkeypatch.setattr(player, "LONGEST", 240.0)
    monkeypatch.setattr(sample_story, "LONGEST", 480.0)


@pytest.fixture(scope="session")
def gateway_kubeconfig(cluster: Cluster) -> Path:
    return as_gateway(cluster.kubeconfig)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_gateway(
    postgres_server_url: str,
    database_template: str,
    gateway_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("gateway")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        gateway_process(url, gateway_kubeconfig, directory, **STEADY, JOBGATE_RUNTIME_IMAGE=RUNTIME_IMAGE) as gateway,
    ):
        await gateway.start()
        yield gateway
        assert await gateway.stop() == 0, gateway.log.read_text()


@pytest_asyncio.fixture
async def own_gateway(database_url: str, gateway_kubeconfig: Path, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    """A gateway that the test starts and stops."""
    async with gateway_process(database_url, gateway_kubeconfig, tmp_path / "gateway") as gateway:
        yield gateway


@pytest_asyncio.fixture
async def http(shared_gateway: GatewayProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=shared_gateway.url, timeout=60) as client:
        yield client


@pytest_asyncio.fixture
async def api(cluster: Cluster) -> AsyncIterator[KubeClient]:
    """A client of the cluster with the rights of its admin."""
    async with connect(cluster) as client:
        yield client


@pytest.fixture
def user(http: httpx2.AsyncClient, namespace: str) -> User:
    return User(http, namespace)
