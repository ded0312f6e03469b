"""A server that drains announces in its answers that it closes their connections."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from app.http_server.draining import TICK, Drain, DrainTimes
from app.http_server.limits import ServerLimits
from app.http_server.server import Server, serve, uvicorn_config
from app.http_server.sockets import bind
from tests.http_server.test_connections import Address, App, Receive, Scope, Send, answer, echo_path
from tests.support.machine.raw_http import PATIENCE, Connection, request

CLOSE = b"connection: close\r\n"


@asynccontextmanager
async def serving(app: App, stop: asyncio.Event) -> AsyncIterator[Address]:
    """Run a server that drains from `stop` until the end of the block."""
    listening = bind("127.0.0.1", 0)
    address = listening.getsockname()
    server = Server(uvicorn_config(app, graceful_seconds=1), listening, ServerLimits())
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        times, drained = DrainTimes(least=PATIENCE, most=PATIENCE), asyncio.Event()
        group.create_task(
            serve(
                server,
                stop,
                drained,
                times=times,
                on_ready=ready.set,
                on_drained=drained.set,
                on_close=lambda: None,
            )
        )
        await ready.wait()
        try:
            yield address
        finally:
            stop.set()
            server.should_exit = True


async def head(client: Connection) -> bytes:
    """The status line and the fields of the next answer, in lower case. Its body stays unread."""
    async with asyncio.timeout(PATIENCE):
        return (await client.reader.readuntil(b"\r\n\r\n")).lower()


async def until_drained(address: Address) -> None:
    """Wait until the server has begun to drain: it then closes a new connection after its first answer."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with await Connection.open(address) as probe:
                await probe.send(request("GET", "/probe"))
                if CLOSE in await head(probe):
                    return


async def test_the_next_answer_of_each_connection_is_its_last_and_says_so() -> None:
    stop = asyncio.Event()
    async with serving(echo_path, stop) as address, await Connection.open(address) as kept:
        await kept.send(request("GET", "/before"))
        before = await head(kept)
        assert CLOSE not in before
        await kept.reader.readexactly(len("/before"))
        stop.set()
        await until_drained(address)
        await kept.send(request("GET", "/after"))
        assert CLOSE in await head(kept)
        assert await kept.rest() == b"/after"


async def test_an_answer_in_progress_announces_the_end_unless_its_head_is_sent() -> None:
    """A connection whose answer has begun serves one more request, because its client expects it to stay open."""
    stop, waits, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in ("/waits", "/begun"):
            await echo_path(scope, receive, send)
        elif scope["path"] == "/waits":
            waits.set()
            await release.wait()
            await answer(send, 200, b"late")
        else:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
            await send({"type": "http.response.body", "body": b"ha", "more_body": True})
            await release.wait()
            await send({"type": "http.response.body", "body": b"lf"})

    async with serving(app, stop) as address, AsyncExitStack() as stack:
        waiting, begun = [await stack.enter_async_context(await Connection.open(address)) for _ in range(2)]
        await waiting.send(request("GET", "/waits"))
        await waits.wait()
        await begun.send(request("GET", "/begun"))
        assert CLOSE not in await head(begun)
        stop.set()
        await until_drained(address)
        release.set()
        assert CLOSE in await head(waiting)
        assert await waiting.rest() == b"late"
        assert await begun.reader.readexactly(4) == b"half"
        await begun.send(request("GET", "/last"))
        assert CLOSE in await head(begun)
        assert await begun.rest() == b"/last"


class Ending:
    """A server that is told to stop, with the times of its drain."""

    def __init__(self, times: DrainTimes) -> None:
        listening = bind("127.0.0.1", 0)
        self.address: Address = listening.getsockname()
        self.server = Server(uvicorn_config(echo_path, graceful_seconds=1), listening, ServerLimits())
        self.stop, self.ready, self.closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._times = times

    async def run(self) -> None:
        drained = asyncio.Event()
        await serve(
            self.server,
            self.stop,
            drained,
            times=self._times,
            on_ready=self.ready.set,
            on_drained=drained.set,
            on_close=self.closed.set,
        )


async def ask(address: Address, path: str) -> bytes:
    """Send a request on a connection of its own, and return the body of the answer."""
    async with await Connection.open(address) as client:
        await client.send(request("GET", path))
        await head(client)
        return await client.rest()


async def test_a_server_drains_as_long_as_requests_arrive() -> None:
    """A load balancer that learns late that the server is not ready loses no request."""
    ending, loop = Ending(DrainTimes(least=0.2, most=PATIENCE)), asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(ending.run())
        await ending.ready.wait()
        ending.stop.set()
        until_late = loop.time() + 10 * 0.2
        while loop.time() < until_late:
            assert await ask(ending.address, "/late") == b"/late"
        assert not ending.closed.is_set()
        # Probes never stop, so they do not count.
        while not ending.closed.is_set():
            with suppress(OSError, asyncio.IncompleteReadError):
                await ask(ending.address, "/readyz")
        await running


async def test_connections_that_wait_to_be_accepted_are_served_before_the_socket_closes() -> None:
    ending = Ending(DrainTimes(least=0.2, most=0.2))
    async with asyncio.TaskGroup() as group:
        group.create_task(ending.run())
        await ending.ready.wait()
        # The kernel completes these connections while the event loop, which this test blocks, cannot accept them.
        clients = [socket.create_connection(ending.address) for _ in range(40)]
        for client in clients:
            client.sendall(request("GET", "/queued"))
            client.settimeout(0)
        ending.server.acceptor.close()
        ending.stop.set()
        answers = []
        for client in clients:
            reader, writer = await asyncio.open_connection(sock=client)
            answers.append(await asyncio.wait_for(reader.readuntil(b"/queued"), PATIENCE))
            writer.close()
    assert len(answers) == len(clients)


def seconds_until_over(times: DrainTimes, *, requests_until: float, step: float = TICK) -> float:
    """How long a server drains that gets a request in each step until then, as its own clock counts it."""
    drain, spent, requests = Drain(times), 0.0, 0
    while True:
        spent += step
        requests += spent <= requests_until
        if drain.is_over(step, requests):
            return spent


def test_how_long_a_server_drains() -> None:
    times = DrainTimes.of(5, 25)
    assert times == DrainTimes(least=5, most=15)
    assert seconds_until_over(times, requests_until=0) == 5.0
    assert seconds_until_over(times, requests_until=3) == 5.0
    assert seconds_until_over(times, requests_until=4.5) == 5.5
    assert seconds_until_over(times, requests_until=10) == 11.0
    assert seconds_until_over(times, requests_until=100) == 15.0
    assert DrainTimes.of(20, 25) == DrainTimes(least=20, most=20)
    assert DrainTimes.of(0, 25) == DrainTimes(least=0, most=0)


def test_time_in_which_the_process_does_not_run_is_no_drain() -> None:
    """Nobody has seen that it is not ready, and requests wait for it."""
    assert seconds_until_over(DrainTimes.of(5, 25), requests_until=0, step=4.0) == 4.0 * 20
