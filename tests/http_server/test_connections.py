"""Connections whose client pipelines, disconnects, reads slowly or sends no body, over real sockets."""

import asyncio
import gc
import json
import socket
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from math import ceil
from typing import Any

import pytest
from uvicorn.server import ServerState

from app.api.layers.answer import OutgoingAnswer
from app.api.layers.requests import RequestLayer
from app.api.metrics import HttpMetrics
from app.api.pages.metrics import MetricsApp
from app.fairness.share import SHARE, FairShares
from app.http_server.draining import Arrivals
from app.http_server.forwarding import NO_PROXIES
from app.http_server.limits import ConnectionStage, Overdue, ServerLimits, overdue
from app.http_server.protocol import GuardedProtocol
from app.http_server.server import Server, uvicorn_config
from app.http_server.sockets import bind
from tests.support.machine.raw_http import PATIENCE, Connection, request
from tests.support.waiting import until

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Address = tuple[str, int]

# Bytes of the socket buffers. They are small, so that data which the client does not read stays in the server.
BUFFER = 32 * 1024
PAGE = b"x" * 4 * 2**20
BAD_CHUNK = request("POST", "/bad", "Transfer-Encoding: chunked", length=False) + b"nonsense\r\n"


async def answer(send: Send, status: int, body: bytes) -> None:
    fields = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def echo_path(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer with the path, without reading the body."""
    await answer(send, 200, scope["path"].encode())


async def page(_scope: Scope, receive: Receive, send: Send) -> None:
    await answer(OutgoingAnswer(receive, send).send, 200, PAGE)


@asynccontextmanager
async def served(app: App, limits: ServerLimits | None = None) -> AsyncIterator[Address]:
    """Run a server with its acceptor."""
    listening = bind("127.0.0.1", 0)
    config = uvicorn_config(app, graceful_seconds=1)
    server = Server(config, listening, limits or ServerLimits())
    async with asyncio.TaskGroup() as group:
        group.create_task(server.run_until_exit())
        await server.accepts.wait()
        try:
            yield listening.getsockname()
        finally:
            server.should_exit = True


@asynccontextmanager
async def one_connection(app: App) -> AsyncIterator[tuple[GuardedProtocol, Connection]]:
    """Open a connection with small buffers and without an acceptor, so that the test can check it with its own clock.

    Yields the protocol of the server, and the client.
    """
    listening = bind("127.0.0.1", 0)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    config = uvicorn_config(app, graceful_seconds=1)
    protocol = GuardedProtocol(
        config,
        ServerState(),
        limits=ServerLimits(),
        address="127.0.0.1",
        shares=FairShares(),
        arrivals=Arrivals(),
        on_lost=lambda _: lost.set(),
    )
    lost = asyncio.Event()
    async with await asyncio.get_running_loop().create_server(lambda: protocol, sock=listening):
        async with await Connection.open(listening.getsockname(), receive_buffer=BUFFER) as client:
            yield protocol, client
        async with asyncio.timeout(PATIENCE):
            await lost.wait()


async def test_each_request_has_the_share_of_its_own_credential() -> None:
    keys: list[object] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        share = scope[SHARE]
        share.identify("the token")
        keys.append(share.answer.key)
        await answer(send, 200, b"")

    requests = [request("GET", "/", "Authorization: Bearer t"), request("GET", "/")]
    async with one_connection(app) as (_, client):
        await client.send(b"".join(requests))
        assert [await client.answer() for _ in requests] == [(200, b"")] * 2
    assert keys == ["the token", "127.0.0.1"]


@pytest.mark.parametrize(
    "app",
    [
        MetricsApp(HttpMetrics()),
        RequestLayer(page, metrics=HttpMetrics(), access_log=False, proxies=NO_PROXIES, enveloped="/none"),
    ],
    ids=["the port for metrics", "the API"],
)
async def test_nothing_keeps_a_connection_that_has_ended(app: App) -> None:
    gc.collect()
    gc.disable()
    try:
        async with one_connection(app) as (protocol, client):
            await client.send(request("GET", "/metrics", "Connection: close"))
            assert (await client.answer())[0] == 200
            ended = weakref.ref(protocol)
            del protocol
        await until(lambda: ended() is None, within=PATIENCE)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "sent",
    [(request("GET", "/stream") + request("GET", "/next"),), (request("GET", "/stream"), request("GET", "/next"))],
    ids=["in one packet", "later"],
)
async def test_a_pipelined_request_does_not_hide_a_disconnect(sent: tuple[bytes, ...]) -> None:
    begun: list[str] = []
    received: list[str] = []

    async def app(scope: Scope, receive: Receive, _send: Send) -> None:
        begun.append(scope["path"])
        await receive()
        received.append((await receive())["type"])

    async with served(app) as address:
        async with await Connection.open(address) as client:
            for packet in sent:
                await client.send(packet)
                await until(lambda: begun, within=PATIENCE)
        await until(lambda: received, within=PATIENCE)
    assert (begun, received) == (["/stream"], ["http.disconnect"])


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (request("GET", "/a") + BAD_CHUNK, [(200, "/a"), (400, "MalformedRequest")]),
        (
            request("GET", "/a") + request("GET", "/b") + BAD_CHUNK,
            [(200, "/a"), (200, "/b"), (400, "MalformedRequest")],
        ),
        (request("GET", "/a") + b"nonsense\r\n\r\n", [(200, "/a"), (400, "MalformedRequest")]),
        (request("GET", "/a") + request("GET", "http://a:b/"), [(200, "/a"), (400, "MalformedRequest")]),
        (request("GET", "http://a:b/"), [(400, "MalformedRequest")]),
        (request("GET", "/a") + request("CONNECT", "a:1"), [(200, "/a"), (405, "MethodNotAllowed")]),
        (request("GET", "/a", "Connection: close") + BAD_CHUNK, [(200, "/a")]),
        (BAD_CHUNK + request("GET", "/a"), [(400, "MalformedRequest")]),
    ],
    ids=["second", "third", "no request", "bad target", "bad target first", "CONNECT", "after the last", "first"],
)
async def test_an_error_answer_follows_earlier_answers_and_closes_the_connection(
    sent: bytes, expected: list[tuple[int, str]]
) -> None:
    async with served(echo_path) as address, await Connection.open(address) as client:
        await client.send(sent)
        got = [await client.answer() for _ in expected]
        answers = [(status, body.decode() if status == 200 else json.loads(body)["code"]) for status, body in got]
        assert answers == expected
        assert await client.rest() == b""


async def test_a_bad_body_after_the_answer_gets_no_second_answer() -> None:
    async with served(echo_path) as address, await Connection.open(address) as client:
        await client.send(request("POST", "/a", "Transfer-Encoding: chunked", length=False))
        assert await client.answer() == (200, b"/a")
        await client.send(b"nonsense\r\n")
        assert await client.rest() == b""


async def test_an_answered_connection_with_an_incomplete_body_can_be_displaced() -> None:
    limits = ServerLimits(max_connections=1)
    async with served(echo_path, limits) as address, await Connection.open(address) as early:
        await early.send(request("POST", "/early", body=b"x" * 100)[:-50])
        assert await early.answer() == (200, b"/early")
        async with await Connection.open(address) as late:
            await late.send(request("GET", "/late"))
            assert await late.answer() == (200, b"/late")
        assert await early.rest() == b""


async def test_an_answered_connection_with_an_incomplete_body_is_closed_when_idle() -> None:
    async with served(echo_path, ServerLimits(idle_timeout=0.2)) as address, await Connection.open(address) as client:
        await client.send(request("POST", "/early", body=b"x" * 100)[:-50])
        assert await client.answer() == (200, b"/early")
        assert await client.rest() == b""


async def test_the_server_holds_little_of_a_body_that_is_not_read_and_nothing_after_the_answer() -> None:
    """Thousands of connections may wait for a handler that reads, or for the rest of a body that nothing will read."""
    answers = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await answers.wait()
        await answer(send, 200, b"")

    async with one_connection(app) as (protocol, client):
        await client.send(request("GET", "/", "Content-Length: 1000000", length=False) + b"x" * 20_000)
        await until(lambda: protocol.flow.read_paused, what="the server to stop reading", within=PATIENCE)
        assert len(protocol.cycle.body) == 20_000
        answers.set()
        assert (await client.answer())[0] == 200
        assert not protocol.cycle.body
        assert not protocol.flow.read_paused, "the rest is discarded"


async def test_a_connection_survives_many_bodies_that_the_application_does_not_read() -> None:
    body = b"x" * 3 * 2**20
    async with served(echo_path) as address, await Connection.open(address) as client:
        for _ in range(3):
            await client.send(request("POST", "/early", body=body))
            assert await client.answer() == (200, b"/early")


@pytest.mark.parametrize("fields", [(), ("Connection: close",)], ids=["kept", "closed"])
async def test_a_client_that_reads_fast_enough_gets_its_answer(fields: tuple[str, ...]) -> None:
    """The client takes 32 KiB between two checks, which are 10 s apart by the clock of the test."""
    began = now = asyncio.get_running_loop().time()
    got = 0
    async with one_connection(page) as (server, client):
        await client.send(request("GET", "/", *fields))
        await client.reader.readuntil(b"\r\n\r\n")
        while got + BUFFER <= len(PAGE):
            if server.transport.get_write_buffer_size():
                assert overdue(server.state(now), ServerLimits()) is None
                now += 10
            got += len(await client.reader.readexactly(BUFFER))
        await client.reader.readexactly(len(PAGE) - got)
        assert now - began > 10 * ServerLimits().send_timeout


@pytest.mark.parametrize("fields", [(), ("Connection: close",)], ids=["kept", "closed"])
async def test_a_client_that_reads_too_slowly_is_overdue(fields: tuple[str, ...]) -> None:
    async with one_connection(page) as (server, client):
        await client.send(request("GET", "/", *fields))
        await client.reader.readuntil(b"\r\n\r\n")
        began = ceil(asyncio.get_running_loop().time())  # floats are exact for whole seconds only
        for seconds in range(0, 70, 10):
            assert overdue(server.state(began + seconds), ServerLimits()) is None
            await client.reader.readexactly(100)
        assert overdue(server.state(began + 70), ServerLimits()) is Overdue.SEND


async def test_the_send_timeout_of_a_stream_counts_while_its_handler_is_paused() -> None:
    """A stream whose client reads in time is never overdue, however long it is."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(120):
            await send({"type": "http.response.body", "body": b"x" * 2**17, "more_body": True})

    async with one_connection(app) as (server, client):
        await client.send(request("GET", "/"))
        began = asyncio.get_running_loop().time()
        for seconds in range(0, 1000, 20):
            await client.reader.readexactly(2**18 - 2**12)
            await until(lambda: server.flow.write_paused, within=PATIENCE)
            assert overdue(server.state(began + seconds), ServerLimits()) is None
        assert overdue(server.state(began + 1100), ServerLimits()) is Overdue.SEND


async def test_the_idle_time_begins_when_the_client_has_its_answer() -> None:
    async with one_connection(page) as (server, client):
        await client.send(request("GET", "/"))
        await client.reader.readuntil(b"\r\n\r\n")
        now = asyncio.get_running_loop().time
        assert overdue(server.state(now() + 1000), ServerLimits()) is None
        half = await client.reader.readexactly(len(PAGE) // 2)
        before_end = now()
        await client.reader.readexactly(len(PAGE) - len(half))
        await until(lambda: server.stage, lambda stage: stage is ConnectionStage.IDLE, within=PATIENCE)
        later = now() + 1000
        assert 1000 <= server.state(later).waited <= later - before_end


async def test_a_request_refused_before_100_continue_gets_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The client sends a bad body before the application requests it with 100 Continue."""
    refused = asyncio.Event()

    async def reads_late(_scope: Scope, receive: Receive, _send: Send) -> None:
        await refused.wait()
        assert (await receive())["type"] == "http.disconnect"

    head = request("POST", "/late", "Transfer-Encoding: chunked", "Expect: 100-continue", length=False)
    async with one_connection(reads_late) as (protocol, client):
        await client.send(head + b"nonsense\r\n")
        status, _ = await client.answer()
        refused.set()
        assert (status, await client.reader.read()) == (400, b"")
        await until(lambda: not protocol.server_state.tasks, within=PATIENCE)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_the_client_of_a_request_is_its_peer() -> None:
    """Any client on this machine could otherwise choose the address that the access log names."""

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        await answer(send, 200, f"{scope['client'][0]} {scope['scheme']}".encode())

    async with served(app) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"))
        assert await client.answer() == (200, b"127.0.0.1 http")
