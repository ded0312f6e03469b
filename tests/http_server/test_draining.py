"""A server that drains announces in its answers that it closes their connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

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
        draining = serve(server, stop, drain_seconds=PATIENCE, on_ready=ready.set, on_close=lambda: None)
        group.create_task(draining)
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
