"""A browser, and a gateway on an embedded cluster whose node runs commands, for all tests of a process."""

import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.dashboard.browser import Tab, opened
from tests.dashboard.emptying import delete_all
from tests.e2e.user import User
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster
from tests.support.gateways.bearer import bearer
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process
from tests.support.postgres import connected, fresh_database
from tools.dashboard import BUILT

NAMESPACE = "default"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed: `apt-get install chromium`")
    if not (BUILT / "index.html").exists():
        pytest.skip("the dashboard is not built: `make setup` builds it")
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # Chromium's own sandbox does not work for root and in containers. The pages are those of the test.
        started = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        await started.close()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    request.getfixturevalue("chromium")  # first, so that nothing starts without a browser
    directory = tmp_path_factory.mktemp("dashboard")
    with running_embedded_cluster(directory, "--nodes", "1", "--bookmark-period", "1") as embedded:
        yield embedded


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_gateway(
    cluster: Cluster, postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("gateway")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        gateway_process(url, cluster.kubeconfig, directory, **STEADY) as running,
    ):
        await running.start()
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_closed_gateway(
    cluster: Cluster, postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[str, str]]:
    """The addresses of a gateway that requires tokens, and of its database."""
    directory = tmp_path_factory.mktemp("closed-gateway")
    environment = STEADY | {"JOBGATE_OPEN_ACCESS": "false"}
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        gateway_process(url, cluster.kubeconfig, directory, **environment) as running,
    ):
        yield await running.start(), url


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(shared_gateway: GatewayProcess) -> AsyncIterator[GatewayProcess]:
    """The gateway of the session. It is empty when a test begins."""
    yield shared_gateway
    async with httpx2.AsyncClient(base_url=shared_gateway.url, timeout=60) as http:
        await delete_all(User(http, NAMESPACE))


@pytest_asyncio.fixture(loop_scope="session")
async def user(gateway: GatewayProcess) -> AsyncIterator[User]:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
        yield User(http, NAMESPACE)


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser, gateway: GatewayProcess) -> AsyncIterator[Tab]:
    async with opened(browser, gateway.url) as opened_tab:
        yield opened_tab


@dataclass(frozen=True, slots=True)
class ClosedGateway:
    """A gateway that requires tokens, and its only token, that of a submitter."""

    url: str
    database_url: str
    user: User

    @property
    def token(self) -> str:
        return self.user.headers["Authorization"].removeprefix("Bearer ")


@pytest_asyncio.fixture(loop_scope="session")
async def closed_gateway(shared_closed_gateway: tuple[str, str]) -> AsyncIterator[ClosedGateway]:
    """The gateway of the session that requires tokens. It is empty when a test begins."""
    url, database_url = shared_closed_gateway
    headers = await bearer(database_url, "submitter", NAMESPACE)
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        yield ClosedGateway(url, database_url, User(http, NAMESPACE, headers))
        # Some tests revoke all tokens.
        await delete_all(User(http, NAMESPACE, await bearer(database_url, "admin", "*")))
    async with connected(database_url) as connection:
        await connection.execute("DELETE FROM api_tokens")


@pytest.fixture
def screenshots(request: pytest.FixtureRequest) -> Path | None:
    """The directory for the screenshots of docs/dashboard.md; None unless `--screenshots` is given."""
    given: str | None = request.config.getoption("--screenshots")
    return None if given is None else Path(given)
