"""Accepts connections on the listening socket within the limits, and closes overdue connections."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from app.http_server.accepting import LogThrottle, Shortage, readable
from app.http_server.error_answers import ErrorAnswer, RefusalReason
from app.http_server.limits import ServerLimits, connection_to_displace, overdue
from app.http_server.metrics import CONNECTIONS, REFUSALS
from app.http_server.protocol import GuardedProtocol
from app.http_server.sharing import ConnectionShare

log = structlog.get_logger(__name__)

BACKLOG: Final = 1024  # connections that the kernel queues until they are accepted
# A burst of connections must not delay open requests, so the event loop runs other work after this many.
_ACCEPTED_AT_ONCE: Final = 16
# Time for another process to accept: its event loop answers a few requests in between.
_YIELD_SECONDS: Final = 0.002
# The next ones are accepted without a pause, so that a process that is frozen does not slow the others down much.
_ACCEPTED_PER_YIELD: Final = 2
# A timeout is enforced at most a quarter of the shortest timeout late, and never more than a second late.
_CHECKS_PER_TIMEOUT: Final = 4
_LONGEST_CHECK_PERIOD: Final = 1.0  # seconds
# A search visits every connection. Without a pause after a vain one, each refused client would cost a search.
_SEARCH_PAUSE: Final = 0.25  # seconds

ConnectionFactory = Callable[[str, Callable[[GuardedProtocol], None]], GuardedProtocol]


class ConnectionAcceptor:
    """Accepts connections on a bound socket until `close`. Open connections outlive `close`.

    `share` is given if other processes accept on the same socket.
    """

    def __init__(
        self,
        listening: socket.socket,
        limits: ServerLimits,
        factory: ConnectionFactory,
        share: ConnectionShare | None = None,
    ) -> None:
        self._listening = listening
        self._share = share
        self._limits = limits
        self._factory = factory
        self._connections: set[GuardedProtocol] = set()
        # Connections by client address, including accepted ones whose transport does not exist yet.
        self._held: Counter[str] = Counter()
        self._accepting: asyncio.Task[None] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._shortage, self._refusing = Shortage("http.cannot_accept"), LogThrottle()
        self._search_after = float("-inf")
        self._last_requests = False
        self._empty = asyncio.Event()

    async def run(self) -> None:
        """Accept connections until `close`, and close overdue connections until cancelled."""
        self._listening.settimeout(0)
        self._listening.listen(BACKLOG)
        self._publish()
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._accepting = group.create_task(self._accept(group))
            group.create_task(self._close_overdue())

    def close(self) -> None:
        """Stop accepting connections, and close the socket: connections wait in its queue if another process has it.

        Otherwise the queue would be lost with the socket, so its connections are accepted before.
        """
        if self._accepting is None or self._listening.fileno() < 0:
            return
        if self._share is None:
            self._accept_queue()
        self._accepting.cancel()
        # Now, because the cancelled task runs after the socket is closed.
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        if self._share is not None:
            self._share.withdraw()
            self._share = None  # connections that end later must not publish the share again

    async def wait_empty(self, seconds: float) -> None:
        """Return once no connection is open, at the latest after `seconds`."""
        if self._connections:
            self._empty.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._empty.wait()

    async def wait_closed(self) -> None:
        """Return at once, because uvicorn itself waits for open connections."""

    def expect_last_requests(self) -> None:
        """Close each connection after its next answer, so that clients reconnect to another process."""
        self._last_requests = True
        for connection in self._connections:
            connection.expect_last_request()

    async def _accept(self, group: asyncio.TaskGroup) -> None:
        accepted = 0
        while True:
            if accepted % _ACCEPTED_PER_YIELD == 0 and self._share is not None and self._share.another_holds_fewer():
                await asyncio.sleep(_YIELD_SECONDS)
            try:
                # Not `loop.sock_accept`: cancelled after the accept, it would lose the connection.
                client, address = self._listening.accept()
            except BlockingIOError:
                await readable(self._listening)
                accepted = 0
                continue
            except OSError as error:
                await self._pause_after(error)
                continue
            client.settimeout(0)
            self._admit(group, client, str(address[0]))
            accepted += 1
            if accepted % _ACCEPTED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _accept_queue(self) -> None:
        """Accept the connections that wait. An error concerns a client that is gone, or there are no resources."""
        with suppress(OSError):
            while self._group is not None:
                client, address = self._listening.accept()
                client.settimeout(0)
                self._admit(self._group, client, str(address[0]))

    def _publish(self) -> None:
        if self._share is not None:
            self._share.publish(self._held.total())

    async def _pause_after(self, error: OSError) -> None:
        if not Shortage.causes(error):
            return
        REFUSALS.labels("descriptors").inc()
        self._make_room(None)
        await self._shortage.pause(error, connections=len(self._connections))

    def _admit(self, group: asyncio.TaskGroup, client: socket.socket, address: str) -> None:
        answer: ErrorAnswer | None = None
        if self._held[address] >= self._limits.max_connections_per_address and not self._make_room(address):
            answer = ErrorAnswer(RefusalReason.ADDRESS_CONNECTIONS, self._limits.max_connections_per_address)
        elif self._held.total() >= self._limits.max_connections and not self._make_room(None):
            answer = ErrorAnswer(RefusalReason.CONNECTIONS, self._limits.max_connections)
        if answer is not None:
            self._turn_away(client, address, answer)
            return
        # Count before the task runs: the next accept must already see this connection.
        self._held[address] += 1
        CONNECTIONS.inc()
        self._publish()
        group.create_task(self._connect(client, address))

    async def _connect(self, client: socket.socket, address: str) -> None:
        connection = self._factory(address, self._forget)
        if self._last_requests:
            connection.expect_last_request()
        self._connections.add(connection)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, client)
        except OSError:
            client.close()
            self._forget(connection)

    def _forget(self, connection: GuardedProtocol) -> None:
        """Release the place of a connection. Repeated calls are harmless: aborting and losing both call it."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._held[connection.address] -= 1
        if not self._held[connection.address]:
            del self._held[connection.address]
        CONNECTIONS.dec()
        self._publish()
        if not self._connections:
            self._empty.set()

    def _make_room(self, address: str | None) -> bool:
        """Close one connection on which no request is in progress. Return whether there was one."""
        now = asyncio.get_running_loop().time()
        if now < self._search_after:
            return False
        found = connection_to_displace(
            (connection.state(now) for connection in self._connections if connection.transport is not None), address
        )
        if found is None:
            self._search_after = now + _SEARCH_PAUSE
            return False
        REFUSALS.labels("displaced").inc()
        found.transport.abort()
        self._forget(found)  # now, because asyncio reports the loss only in its next iteration
        return True

    def _turn_away(self, client: socket.socket, address: str, answer: ErrorAnswer) -> None:
        REFUSALS.labels(answer.reason).inc()
        now = asyncio.get_running_loop().time()
        if (dropped := self._refusing.admit(now)) is not None:
            log.warning("http.too_many_connections", reason=answer.reason, address=address, dropped=dropped)
        with client:
            try:
                client.send(answer.encode())
                client.shutdown(socket.SHUT_WR)
                client.recv(64 * 1024)  # closing a socket with unread data resets the connection and loses the answer
            except OSError:
                pass

    async def _close_overdue(self) -> None:
        limits = self._limits
        shortest = min(limits.header_timeout, limits.body_timeout, limits.idle_timeout, limits.send_timeout)
        pause = min(_LONGEST_CHECK_PERIOD, shortest / _CHECKS_PER_TIMEOUT)
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            for connection in [each for each in self._connections if each.transport is not None]:
                if finding := overdue(connection.state(now), limits):
                    connection.end_overdue(finding)
