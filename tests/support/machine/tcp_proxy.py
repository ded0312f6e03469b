"""A TCP proxy that silently drops the data of one direction.

client ──▶ TcpProxy ──▶ server

A connection that has lost bytes remains open on both sides and dead in one direction, as behind a firewall that has
dropped its state. Later connections work.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from enum import Enum

from tests.support.waiting import until

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CHUNK = 2**16  # bytes per read


class Direction(Enum):
    TO_SERVER = "to server"
    TO_CLIENT = "to client"


class TcpProxy:
    """The proxy, on a free loopback port. `connect` opens a connection to the server."""

    def __init__(self, connect: Callable[[], Awaitable[Streams]]) -> None:
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._losing: Direction | None = None
        self._healed = asyncio.Event()
        self._healed.set()
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self._healed.set()
        await until(self._aborted, what="the proxy has closed its connections")
        await self._server.wait_closed()

    def _aborted(self) -> bool:
        for writer in list(self._open):
            writer.transport.abort()
        return not self._open

    @contextmanager
    def losing(self, direction: Direction) -> Iterator[None]:
        """Drop all data in this direction during the block."""
        self._losing = direction
        self._healed.clear()
        try:
            yield
        finally:
            self._losing = None
            self._healed.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, to_server}
        try:
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(self._pump(reader, to_server, Direction.TO_SERVER))
                answering = group.create_task(self._pump(from_server, writer, Direction.TO_CLIENT))
                await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
                await self._healed.wait()  # the end of a connection is lost like everything else
                asking.cancel()
                answering.cancel()
        finally:
            for side in (writer, to_server):
                side.transport.abort()
            self._open -= {writer, to_server}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
        lost = False
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                lost = lost or self._losing is direction
                if not lost:
                    writer.write(chunk)
                    await writer.drain()


@asynccontextmanager
async def tcp_proxy(connect: Callable[[], Awaitable[Streams]]) -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy(connect)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
