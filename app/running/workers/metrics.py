"""Collects the metrics of all processes of a supervisor, so that any worker can answer /metrics for all of them.

Each process listens on an internal socket, which the supervisor has bound before it forked, and answers each
connection with its own metrics. Clients of the shared socket reach a random worker, so without this the counters would
jump from one scrape to the next.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Self

import structlog

from app.http_server.accepting import LogThrottle, Shortage, readable
from app.running.workers.exposition import combine

log = structlog.get_logger(__name__)

_WITHIN: Final = 1.0  # seconds for an answer; a process that is frozen or restarting is left out
_MOST_BYTES: Final = 16 * 1024 * 1024  # of one process; 1000 time series take about 100 KiB


class MetricsExchange:
    """The internal sockets of all processes, by name. Create it before the fork."""

    def __init__(self, names: Sequence[str]) -> None:
        self._sockets = {name: _internal_socket() for name in names}
        # While a process does not answer, every request for /metrics would log a line, and such requests need no token.
        self._missing = {name: LogThrottle() for name in names}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for listening in self._sockets.values():
            listening.close()

    @asynccontextmanager
    async def serve(self, name: str, own: Callable[[], str]) -> AsyncIterator[None]:
        """Answer each connection to the socket of process `name` with its own metrics, during the block."""
        with self._sockets[name].dup() as listening:
            listening.settimeout(0)
            async with asyncio.TaskGroup() as group:
                answering = group.create_task(_answer_all(group, listening, own))
                yield
                answering.cancel()

    async def collect(self, name: str, own: str) -> str:
        """Return the metrics of all processes. `own` are those of process `name`, which calls this."""
        others = [other for other in self._sockets if other != name]
        texts = await asyncio.gather(*(self._read(other) for other in others))
        found = {name: own} | {other: text for other, text in zip(others, texts, strict=True) if text}
        return combine({each: found[each] for each in self._sockets if each in found})

    async def _read(self, name: str) -> str:
        """Return the metrics of another process; empty if it does not answer in time."""
        try:
            async with asyncio.timeout(_WITHIN):
                return await self._receive(name)
        except (OSError, TimeoutError) as error:
            if (dropped := self._missing[name].admit(asyncio.get_running_loop().time())) is not None:
                cause = str(error) or "no answer in time"
                log.info("metrics.process_missing", name=name, error=cause, dropped=dropped)
            return ""

    async def _receive(self, name: str) -> str:
        bound = self._sockets[name]
        with socket.socket(bound.family) as connection:
            connection.settimeout(0)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, bound.getsockname())
            received = bytearray()
            while len(received) < _MOST_BYTES and (data := await loop.sock_recv(connection, 64 * 1024)):
                received += data
        return received.decode()


async def _answer_all(group: asyncio.TaskGroup, listening: socket.socket, own: Callable[[], str]) -> None:
    """Accept connections until cancelled, and answer each in a task of the group.

    asyncio's server would log a hundred lines per second while the process has no free descriptor.
    """
    shortage = Shortage("metrics.cannot_accept")
    while True:
        try:
            connection, _ = listening.accept()
        except BlockingIOError:
            await readable(listening)
        except OSError as error:
            if Shortage.causes(error):
                await shortage.pause(error)
        else:
            group.create_task(_answer(connection, own))


async def _answer(connection: socket.socket, own: Callable[[], str]) -> None:
    with connection, suppress(OSError):  # the process that asked has given up
        connection.settimeout(0)
        try:
            text = own()
        except Exception as error:
            log.exception("metrics.failed", error=repr(error))
            return
        async with asyncio.timeout(_WITHIN):
            await asyncio.get_running_loop().sock_sendall(connection, text.encode())


def _internal_socket() -> socket.socket:
    """Return a listening socket for processes of this machine.

    On Linux it has an abstract name that the kernel chooses, so it needs neither a port nor a writable directory.
    """
    if sys.platform == "linux":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind("")
    else:
        listening = socket.socket(socket.AF_INET)
        listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening
