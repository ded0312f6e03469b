"""One gateway for each session, on a cluster with one node; a namespace and a client for each test."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import httpx2
import pytest
import pytest_asyncio

from tests.behaviour.client import Jobs
from tests.behaviour.stage import control_plane, fresh_namespace, running_gateway
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.nodes import some_node
from tests.support.gateways.process import GatewayProcess

OtherGateway: TypeAlias = Callable[..., AbstractAsyncContextManager[Jobs]]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The control plane under test with a node that runs commands."""
    directory = tmp_path_factory.mktemp("behaviour")
    with control_plane(directory / "cluster") as cluster, some_node(cluster, directory / "node"):
        yield cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gateway(
    stage: Cluster, postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("gateway")
    async with running_gateway(stage, postgres_server_url, database_template, directory) as running:
        yield running


@pytest_asyncio.fixture
async def kube(stage: Cluster) -> AsyncIterator[KubeClient]:
    async with connect(stage) as client:
        yield client


@pytest_asyncio.fixture
async def space(kube: KubeClient) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    async with fresh_namespace(kube) as name:
        yield name


@pytest_asyncio.fixture
async def jobs(gateway: GatewayProcess, kube: KubeClient, space: str) -> AsyncIterator[Jobs]:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
        yield Jobs(http=http, kube=kube, namespace=space)


@pytest.fixture
def other_gateway(
    stage: Cluster, jobs: Jobs, postgres_server_url: str, database_template: str, tmp_path: Path
) -> OtherGateway:
    """Runs another installation with these settings, and returns its client, which has the namespace of `jobs`."""

    @asynccontextmanager
    async def run(**settings: str) -> AsyncIterator[Jobs]:
        async with (
            running_gateway(stage, postgres_server_url, database_template, tmp_path / "other", **settings) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http,
        ):
            yield replace(jobs, http=http)

    return run
