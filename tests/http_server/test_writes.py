"""The head of an answer is sent with its body, or alone if there is no body yet."""

import asyncio

import pytest

from tests.http_server.test_connections import PAGE, Receive, Scope, Send, answer, one_connection, page, served
from tests.http_server.test_draining import head
from tests.support.raw_http import Connection, request

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}


async def test_head_and_body_of_an_answer_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await answer(send, 200, b"short")

    async with one_connection(app) as (server, client):
        await client.send(request("GET", "/first"))
        await client.answer()
        write = server.transport.write

        def noted(data: bytes) -> None:
            written.append(data)
            write(data)

        monkeypatch.setattr(server.transport, "write", noted)
        await client.send(request("GET", "/second"))
        assert await client.answer() == (200, b"short")
        (whole,) = written
        assert whole.endswith(b"\r\n\r\nshort")


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


async def test_a_client_that_leaves_before_the_head_is_sent_causes_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        server.transport.abort()
        while (await receive())["type"] != "http.disconnect":
            pass

    async with one_connection(app) as (server, client):
        await client.send(request("GET", "/"))
        assert await client.rest() == b""
    assert [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []
