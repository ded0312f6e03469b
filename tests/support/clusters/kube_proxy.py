"""A proxy between a gateway and an API server that injects faults. The side of the gateway is plain HTTP.

gateway ──http──▶ KubeProxy ──http or https──▶ API server

pass     everything goes through            refuse   connections are reset
hang     bytes are taken and kept           lose     a matching request is carried out, its answer never comes
                                            hold     a matching request waits here, and arrives when it is let go
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.support.clusters.cluster import as_gateway
from tests.support.clusters.kube import Cluster
from tests.support.waiting import until

CHUNK = 2**16  # bytes per read


class KubeProxy:
    """The proxy. Requests of a connection are sequential, so each request begins at the start of a chunk."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._refuses = False
        self._losing: re.Pattern[bytes] | None = None
        self._to_lose = 0
        self._holding: re.Pattern[bytes] | None = None
        self._let_go = asyncio.Event()
        self.held: list[bytes] = []
        self.lost: list[bytes] = []  # first lines of the requests whose answers were lost
        self.requests: list[bytes] = []
        self.heads: list[str] = []  # request line and header fields of the same requests
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self._passing.set()
        self._let_go.set()
        self.cut()
        await self._server.wait_closed()
        await until(lambda: not self._open, what="the proxy has closed its connections")

    def kubeconfig(self, path: Path) -> Path:
        """A kubeconfig with the address of this proxy and the gateway's token for the cluster."""
        token = Cluster.read(as_gateway(self._cluster.kubeconfig), real=self._cluster.real).token
        context = {"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "contexts": [context],
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "proxy", "user": {"token": token}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def swap(self, cluster: Cluster) -> None:
        """Forward to another API server, and close the connections to the former one."""
        self._cluster = cluster
        self.cut()

    def refuse(self) -> None:
        self._refuses = True
        self.cut()

    def hang(self) -> None:
        self._passing.clear()

    def heal(self) -> None:
        self._refuses = False
        self._passing.set()

    def lose(self, request: str, times: int = 1) -> None:
        """Lose the answers of the next requests whose first line matches."""
        self._losing, self._to_lose = re.compile(request.encode()), times

    def hold(self, request: str) -> None:
        """Hold the next request whose first line matches, even if its sender disconnects."""
        self._holding = re.compile(request.encode())

    def let_go(self) -> None:
        self._let_go.set()

    def cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        await self._passing.wait()
        target = urlsplit(self._cluster.url)
        try:
            upstream = await asyncio.open_connection(target.hostname, target.port, ssl=self._cluster.tls)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, upstream[1]}
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._exchange(reader, writer, *upstream)
        finally:
            self._open -= {writer, upstream[1]}
            for side in (writer, upstream[1]):
                side.transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        deaf = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._ask(reader, to_server, deaf))
            answering = group.create_task(self._answer(from_server, writer, deaf))
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
            answering.cancel()

    async def _ask(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter, deaf: asyncio.Event) -> None:
        while chunk := await reader.read(CHUNK):
            await self._passing.wait()
            line = chunk.partition(b"\r\n")[0]
            if line.endswith(b"HTTP/1.1"):
                self.requests.append(line)
                self.heads.append(chunk.partition(b"\r\n\r\n")[0].decode("latin-1"))
                if self._to_lose and self._losing is not None and self._losing.search(line):
                    self._to_lose -= 1
                    deaf.set()
                if self._holding is not None and self._holding.search(line):
                    self._holding = None
                    self.held.append(line)
                    await self._let_go.wait()
            to_server.write(chunk)
            await to_server.drain()

    async def _answer(
        self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter, deaf: asyncio.Event
    ) -> None:
        while chunk := await from_server.read(CHUNK):
            await self._passing.wait()
            if deaf.is_set():
                self.lost.append(chunk.partition(b"\r\n")[0])
                return  # the server has answered, so the request has happened
            writer.write(chunk)
            await writer.drain()


@asynccontextmanager
async def kube_proxy(cluster: Cluster) -> AsyncIterator[KubeProxy]:
    proxy = KubeProxy(cluster)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
