"""Serves an application on a bound socket with uvicorn's server and our own acceptor, and drains it on shutdown."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Coroutine, Iterator

import structlog
import uvicorn
from typing_extensions import override

from app.fairness.share import FairShares
from app.http_server.acceptor import ConnectionAcceptor
from app.http_server.draining import TICK, Arrivals, Drain, DrainTimes
from app.http_server.limits import RESERVED_DESCRIPTORS, ServerLimits
from app.http_server.protocol import GuardedProtocol
from app.http_server.sharing import ConnectionShare

log = structlog.get_logger(__name__)

# Seconds in which a client that has just connected to a drained process sends its request.
_LAST_REQUESTS = 1.0


class Server(uvicorn.Server):
    """uvicorn's server with limits on connections. Signal handling is left to the caller.

    The event `accepts` is set once connections are accepted. `share` is given if other processes accept on the socket.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        limits: ServerLimits,
        share: ConnectionShare | None = None,
    ) -> None:
        super().__init__(config)
        self.acceptor = ConnectionAcceptor(listening, limits, self._connection, share)
        self.accepts = asyncio.Event()
        self._limits = limits
        self._shares = FairShares()
        self._arrivals = Arrivals()
        self._listening = listening

    def _connection(self, address: str, on_lost: Callable[[GuardedProtocol], None]) -> GuardedProtocol:
        return GuardedProtocol(
            self.config,
            self.server_state,
            limits=self._limits,
            address=address,
            on_lost=on_lost,
            shares=self._shares,
            arrivals=self._arrivals,
        )

    async def drain(self, times: DrainTimes) -> None:
        """Close each connection after its next answer, and return when the server has drained."""
        self.acceptor.expect_last_requests()
        drain, loop = Drain(times), asyncio.get_running_loop()
        before = loop.time()
        while times.most:
            await asyncio.sleep(TICK)
            now = loop.time()
            if drain.is_over(now - before, self._arrivals.requests):
                return
            before = now

    async def run_until_exit(self) -> None:
        """Serve until `should_exit` is set, then wait for open requests up to the configured time."""
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(self.acceptor.run())
            await self.serve(sockets=[self._listening])
            listening.cancel()

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = [self.acceptor]  # type: ignore[list-item]  # uvicorn calls `close` and `wait_closed` of each
        self.started = True
        self.accepts.set()

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # uvicorn would replace the handlers of `app.running.shutdown`


def uvicorn_config(app: object, *, graceful_seconds: int) -> uvicorn.Config:
    """Return the configuration of uvicorn: HTTP/1.1 only, no lifespan events, no log output.

    Each request has an empty context: a pipelined one would otherwise inherit the context variables of the one before.
    """
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        interface="asgi3",  # uvicorn would take an application whose call is no coroutine function for ASGI 2
        http=GuardedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=graceful_seconds,
        server_header=False,
        lifespan="off",
        proxy_headers=False,  # the client of a request is the peer, whatever the request says
        reset_contextvars=True,
    )


async def serve(
    server: Server,
    drain: asyncio.Event,
    stop: asyncio.Event,
    *,
    times: DrainTimes,
    on_ready: Callable[[], None],
    on_drained: Callable[[], None],
    on_close: Callable[[], None],
) -> None:
    """Serve until `stop`. Other processes may accept connections on the same socket.

    From `drain` on, each answer closes its connection; `on_drained` is called when the server has drained. On `stop`,
    it accepts no more connections and completes its open ones: within the least time of a drain, or soon if it was
    drained before. `on_close` is called after the acceptor has closed. It must end answers that never end by
    themselves, as streams do.
    """
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.run_until_exit())
        await server.accepts.wait()
        on_ready()
        await _while_serving(serving, drain.wait(), stop.wait())
        if drain.is_set():
            await _while_serving(serving, server.drain(times), stop.wait())
            on_drained()
        server.acceptor.expect_last_requests()
        await _while_serving(serving, stop.wait())
        server.acceptor.close()
        # A stop without a drain is a rolling restart: idle clients still expect their connections to work.
        patience = min(_LAST_REQUESTS, times.least) if drain.is_set() else max(_LAST_REQUESTS, times.least)
        await server.acceptor.wait_empty(patience)
        on_close()
        server.should_exit = True


async def _while_serving(serving: "asyncio.Task[None]", *waits: Coroutine[None, None, object]) -> None:
    """Return when one of the waits is over, or the server has ended."""
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(each) for each in waits]
        await asyncio.wait({serving, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()


def with_descriptors_for(limits: ServerLimits) -> ServerLimits:
    """Raise the soft limit of file descriptors as far as needed and permitted, and return the limits that then fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.max_connections + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    fitting = limits if soft == resource.RLIM_INFINITY else limits.fitting(soft)
    if fitting != limits:
        log.warning(
            "http.few_descriptors",
            descriptors=soft,
            max_connections=fitting.max_connections,
            max_connections_per_address=fitting.max_connections_per_address,
        )
    return fitting
