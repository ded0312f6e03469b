"""The listening socket: accepts connections within the limits, and ends those that are overdue."""

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable
from typing import Final

import structlog

from app.http_server import answers
from app.http_server.answers import Refusal
from app.http_server.limits import ServerLimits, dispensable, overdue
from app.http_server.metrics import CONNECTIONS, REFUSALS
from app.http_server.protocol import GuardedProtocol

log = structlog.get_logger()

BACKLOG: Final = 1024  # connections that the kernel keeps until they are accepted
_ACCEPTED_AT_ONCE: Final = 16  # before other work of the event loop gets its turn
_NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BACK_OFF: Final = 1.0  # seconds without accepting when the process has no descriptor left
_LOG_PERIOD: Final = 60.0  # seconds between two lines about the same trouble
_SWEEPS: Final = 4  # in the shortest limit of time
_LONGEST_SWEEP: Final = 1.0  # seconds
_SEARCH_PAUSE: Final = 0.25  # seconds after a search for a connection to close that found none

Factory = Callable[[str, Callable[[GuardedProtocol], None]], GuardedProtocol]


class Seldom:
    """Whether to write a log line now; at most one a period, with the number of those that were left out."""

    def __init__(self, period: float = _LOG_PERIOD) -> None:
        self._period = period
        self._next = float("-inf")
        self._left_out = 0

    def due(self, now: float) -> int | None:
        """The number of lines left out since the last one, or None when this one is left out as well."""
        if now < self._next:
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        self._next = now + self._period
        return left_out


class Listener:
    """Accepts from a bound socket. `run` accepts and sweeps until `close`; connections live on until they end."""

    def __init__(self, listening: socket.socket, limits: ServerLimits, factory: Factory) -> None:
        self._listening = listening
        self._limits = limits
        self._factory = factory
        self._connections: set[GuardedProtocol] = set()
        self._held: Counter[str] = Counter()
        self._accepting: asyncio.Task[None] | None = None
        self._no_resources, self._refusing = Seldom(), Seldom()
        self._search_after = float("-inf")
        self._last_requests = False

    async def run(self) -> None:
        """Accept until `close`, and end overdue connections until cancelled."""
        self._listening.settimeout(0)
        self._listening.listen(BACKLOG)
        async with asyncio.TaskGroup() as group:
            self._accepting = group.create_task(self._accept(group))
            group.create_task(self._sweep())

    def close(self) -> None:
        """Accept no further connection."""
        if self._accepting is not None:
            self._accepting.cancel()

    async def wait_closed(self) -> None:
        """Return at once: uvicorn waits for connections itself."""

    def expect_last_requests(self) -> None:
        """Close each connection after its next answer, so that clients open their next one elsewhere."""
        self._last_requests = True
        for connection in self._connections:
            connection.last_request = True
            if connection.cycle is not None:
                connection.cycle.keep_alive = False

    async def _accept(self, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        at_once = 0
        while True:
            try:
                client, address = await loop.sock_accept(self._listening)
            except OSError as error:
                await self._pause_after(error)
                continue
            self._admit(group, client, str(address[0]))
            at_once += 1
            if at_once % _ACCEPTED_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _pause_after(self, error: OSError) -> None:
        if error.errno not in _NO_RESOURCES:
            return  # this client went away before it was accepted
        REFUSALS.labels("descriptors").inc()
        now = asyncio.get_running_loop().time()
        if (left_out := self._no_resources.due(now)) is not None:
            log.error("http.cannot_accept", error=str(error), connections=len(self._connections), left_out=left_out)
        self._make_room(None)
        await asyncio.sleep(_BACK_OFF)

    def _admit(self, group: asyncio.TaskGroup, client: socket.socket, address: str) -> None:
        refusal: Refusal | None = None
        if self._held[address] >= self._limits.max_connections_per_address and not self._make_room(address):
            refusal = answers.ADDRESS_CONNECTIONS
        elif self._held.total() >= self._limits.max_connections and not self._make_room(None):
            refusal = answers.CONNECTIONS
        if refusal is not None:
            self._turn_away(client, address, refusal)
            return
        self._held[address] += 1
        CONNECTIONS.inc()
        group.create_task(self._connect(client, address))

    async def _connect(self, client: socket.socket, address: str) -> None:
        connection = self._factory(address, self._forget)
        connection.last_request = self._last_requests
        self._connections.add(connection)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, client)
        except OSError:
            client.close()
            self._forget(connection)

    def _forget(self, connection: GuardedProtocol) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._held[connection.address] -= 1
        if not self._held[connection.address]:
            del self._held[connection.address]
        CONNECTIONS.dec()

    def _make_room(self, address: str | None) -> bool:
        """Close a connection that its client can do without; whether there was one."""
        now = asyncio.get_running_loop().time()
        if now < self._search_after:
            return False
        found = dispensable((one.standing(now) for one in self._connections if one.transport is not None), address)
        if found is None:
            self._search_after = now + _SEARCH_PAUSE
            return False
        REFUSALS.labels("displaced").inc()
        found.transport.abort()
        self._forget(found)
        return True

    def _turn_away(self, client: socket.socket, address: str, refusal: Refusal) -> None:
        REFUSALS.labels(refusal.reason).inc()
        now = asyncio.get_running_loop().time()
        if (left_out := self._refusing.due(now)) is not None:
            log.warning("http.too_many_connections", reason=refusal.reason, address=address, left_out=left_out)
        with client:
            try:
                client.send(refusal.wire())
                client.shutdown(socket.SHUT_WR)
                client.recv(64 * 1024)  # what is left unread when a socket is closed resets the connection
            except OSError:
                pass

    async def _sweep(self) -> None:
        limits = self._limits
        shortest = min(limits.header_timeout, limits.body_timeout, limits.idle_timeout, limits.send_timeout)
        pause = min(_LONGEST_SWEEP, shortest / _SWEEPS)
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            for connection in [one for one in self._connections if one.transport is not None]:
                if finding := overdue(connection.standing(now), limits):
                    connection.end_overdue(finding)
