"""The parts that the tests freeze, each with the databases and kubeconfigs of two stacks of gateways."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from app.db.postgres.migrations import migrate
from app.embedded_postgres.server import EmbeddedPostgres
from tests.support.clusters.cluster import EmbeddedProcess, as_gateway
from tests.support.clusters.kube import Cluster
from tests.support.clusters.nodes import some_node
from tests.support.machine.freezing import frozen
from tests.support.machine.tcp_proxy import Direction, TcpProxy, tcp_proxy
from tests.support.postgres import CAN_HANG, fresh_database, migrated_template, writes_hang

STACKS = 2

Freeze = Callable[[int], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A part that can freeze. In each pair, the first item is for the stack of one gateway, the second for that of two.

    Args:
        direct_urls: URLs of the databases that bypass the frozen part.
        freeze: freezes the part during a block. Its argument is the number of the freeze.
        blinds: whether a freeze makes statuses stale; otherwise it makes gateways unready.
    """

    cluster: Cluster
    database_urls: Sequence[str]
    direct_urls: Sequence[str]
    kubeconfigs: Sequence[Path]
    freeze: Freeze
    blinds: bool


@asynccontextmanager
async def _databases(directory: Path) -> AsyncIterator[tuple[EmbeddedPostgres, list[str]]]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(EmbeddedPostgres(directory, settings=CAN_HANG))
        template = await stack.enter_async_context(migrated_template(server.url, migrate))
        yield (
            server,
            [await stack.enter_async_context(fresh_database(server.url, template=template)) for _ in range(STACKS)],
        )


@asynccontextmanager
async def _in_a_thread(context: AbstractContextManager[object]) -> AsyncIterator[None]:
    """Enter and leave the context in a thread, because it runs its own event loop."""
    await asyncio.to_thread(context.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


@asynccontextmanager
async def _stopped(pid: int) -> AsyncIterator[None]:
    with frozen(pid):
        yield


@asynccontextmanager
async def _losing(proxies: Sequence[TcpProxy], number: int) -> AsyncIterator[None]:
    """Drop all bytes of one direction: another one for each stack, and alternating with each freeze."""
    directions = list(Direction)
    async with AsyncExitStack() as stack:
        for place, proxy in enumerate(proxies):
            stack.enter_context(proxy.losing(directions[(place + number) % len(directions)]))
        yield


@asynccontextmanager
async def postgres(cluster: Cluster, directory: Path) -> AsyncIterator[Scene]:
    """A freeze stops all processes of PostgreSQL."""
    async with _databases(directory / "postgres") as (server, urls):
        assert server.pid is not None
        yield _scene(cluster, urls, freeze=lambda _: _stopped(server.pid or 0))


@asynccontextmanager
async def disk(cluster: Cluster, directory: Path) -> AsyncIterator[Scene]:
    """A freeze blocks all commits of PostgreSQL that write. Reads continue."""
    async with _databases(directory / "postgres") as (server, urls):
        yield _scene(cluster, urls, freeze=lambda _: writes_hang(server.url))


@asynccontextmanager
async def api_server(cluster: Cluster, directory: Path) -> AsyncIterator[Scene]:
    """A freeze stops the API server: its port accepts connections and does not answer."""
    async with _databases(directory / "postgres") as (_, urls):
        if cluster.real:
            pid_file = cluster.kubeconfig.with_name("apiserver.pid")
            if not pid_file.exists():
                pytest.skip(f"only an API server on this machine can be stopped, whose process {pid_file} names")
            pid = int(pid_file.read_text())
            yield _scene(cluster, urls, freeze=lambda _: _stopped(pid), blinds=True)
            return
        process = EmbeddedProcess(directory / "cluster", "--nodes", "0", "--bookmark-period", "1")
        try:
            own = await asyncio.to_thread(process.start)
            async with _in_a_thread(some_node(own, directory / "node")):
                yield _scene(own, urls, freeze=lambda _: _stopped(process.pid), blinds=True)
        finally:
            await asyncio.to_thread(process.kill)


@asynccontextmanager
async def network_to_postgres(cluster: Cluster, directory: Path) -> AsyncIterator[Scene]:
    """A freeze silently drops the bytes to PostgreSQL, or those from it."""
    async with _databases(directory / "postgres") as (server, urls), AsyncExitStack() as stack:
        connect = partial(asyncio.open_unix_connection, str(server.socket))
        proxies = [await stack.enter_async_context(tcp_proxy(connect)) for _ in urls]
        yield Scene(
            cluster=cluster,
            database_urls=[_through(url, proxy) for url, proxy in zip(urls, proxies, strict=True)],
            direct_urls=urls,
            kubeconfigs=[cluster.kubeconfig] * STACKS,
            freeze=partial(_losing, proxies),
            blinds=False,
        )


@asynccontextmanager
async def network_to_cluster(cluster: Cluster, directory: Path) -> AsyncIterator[Scene]:
    """A freeze silently drops the bytes to the API server, or those from it."""
    async with _databases(directory / "postgres") as (_, urls), AsyncExitStack() as stack:
        target = urlsplit(cluster.url)
        connect = partial(asyncio.open_connection, target.hostname, target.port)
        proxies = [await stack.enter_async_context(tcp_proxy(connect)) for _ in urls]
        yield Scene(
            cluster=cluster,
            database_urls=urls,
            direct_urls=urls,
            kubeconfigs=[_leading_to(proxy, cluster, directory / f"kubeconfig-{proxy.port}") for proxy in proxies],
            freeze=partial(_losing, proxies),
            blinds=True,
        )


def _scene(cluster: Cluster, urls: Sequence[str], *, freeze: Freeze, blinds: bool = False) -> Scene:
    return Scene(
        cluster=cluster,
        database_urls=urls,
        direct_urls=urls,
        kubeconfigs=[cluster.kubeconfig] * STACKS,
        freeze=freeze,
        blinds=blinds,
    )


def _through(url: str, proxy: TcpProxy) -> str:
    parts = urlsplit(url)
    return f"postgresql://{parts.username}@127.0.0.1:{proxy.port}{parts.path}"


def _leading_to(proxy: TcpProxy, cluster: Cluster, path: Path) -> Path:
    """Write the kubeconfig of the gateway with the port of the proxy. The server's certificate is valid there, too."""
    document = yaml.safe_load(as_gateway(cluster.kubeconfig).read_text())
    for each in document["clusters"]:
        parts = urlsplit(each["cluster"]["server"])
        each["cluster"]["server"] = f"{parts.scheme}://127.0.0.1:{proxy.port}"
        authority = each["cluster"].get("certificate-authority")
        if authority:
            each["cluster"]["certificate-authority"] = str(cluster.kubeconfig.parent / authority)
    path.write_text(yaml.safe_dump(document))
    return path
