"""The head of an answer is sent although its body is long, late or missing."""

import asyncio

from tests.http_server.test_connections import PAGE, Receive, Scope, Send, page, served
from tests.http_server.test_draining import head
from tests.support.machine.raw_http import Connection, request

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}


async def test_a_long_body_follows_its_head() -> None:
    async with served(page) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/"))
        assert await client.answer() == (200, PAGE)


async def test_the_head_of_a_stream_without_data_is_sent() -> None:
    release = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        await release.wait()
        await send({"type": "http.response.body", "body": b"late"})

    async with served(app) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/"))
        assert b" 200 " in await head(client)
        release.set()
        assert await client.reader.readexactly(4) == b"late"


async def test_the_head_of_an_answer_that_fails_is_sent() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        raise RuntimeError("broken")

    async with served(app) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/"))
        assert b" 200 " in await head(client)
        assert await client.rest() == b""
