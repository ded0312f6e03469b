"""Several servers on one socket: who accepts a connection, and how one of them stops beside the others."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from app.http_server.draining import DrainTimes
from app.http_server.limits import ServerLimits
from app.http_server.server import Server, serve, uvicorn_config
from app.http_server.sharing import ConnectionTable
from app.http_server.sockets import bind
from tests.http_server.test_connections import App, Receive, Scope, Send, answer, echo_path
from tests.support.machine.raw_http import PATIENCE, Connection, request
from tests.support.waiting import until


def test_a_process_knows_whether_another_one_holds_fewer_connections() -> None:
    table = ConnectionTable(3)
    first, second = table.share_of(0), table.share_of(1)
    first.publish(5)
    assert not first.another_holds_fewer(), "the others do not accept"
    second.publish(5)
    assert not first.another_holds_fewer()
    second.publish(4)
    assert first.another_holds_fewer()
    assert not second.another_holds_fewer()
    second.withdraw()
    assert not first.another_holds_fewer()
    second.publish(0)
    table.withdraw(1)
    assert not first.another_holds_fewer()


class Member:
    """A server on a shared socket, in this process."""

    def __init__(self, listening: socket.socket, table: ConnectionTable, number: int, app: App) -> None:
        self.drain, self.stop, self.ready = asyncio.Event(), asyncio.Event(), asyncio.Event()
        config = uvicorn_config(app, graceful_seconds=5)
        # As after a fork, each has a descriptor of the same socket.
        self.share = table.share_of(number)
        self.server = Server(config, listening.dup(), ServerLimits(), self.share)
        self.held = lambda: len(self.server.acceptor._connections)

    async def serve(self) -> None:
        await serve(
            self.server,
            self.drain,
            self.stop,
            times=DrainTimes(least=PATIENCE, most=PATIENCE),
            on_ready=self.ready.set,
            on_drained=lambda: None,
            on_close=lambda: None,
        )


@asynccontextmanager
async def members(
    count: int, app: App = echo_path, *, idle: int = 0
) -> AsyncIterator[tuple[list[Member], socket.socket]]:
    """Servers on one socket, and `idle` processes that have no connection and never accept one."""
    table = ConnectionTable(count + idle)
    for number in range(idle):
        table.share_of(count + number).publish(0)
    with bind("127.0.0.1", 0) as listening:
        made = [Member(listening, table, number, app) for number in range(count)]
        async with asyncio.TaskGroup() as group:
            for member in made:
                group.create_task(member.serve())
                await member.ready.wait()
            try:
                yield made, listening
            finally:
                for member in made:
                    member.drain.set()
                    member.stop.set()


async def opened(stack: AsyncExitStack, listening: socket.socket, count: int) -> list[Connection]:
    """Connections that have each got an answer, and stay open until the end of the stack."""
    connections = [
        await stack.enter_async_context(await Connection.open(listening.getsockname())) for _ in range(count)
    ]
    for connection in connections:
        await connection.send(request("GET", "/here"))
        assert (await connection.answer())[0] == 200
    return connections


async def test_connections_are_balanced() -> None:
    async with members(3) as (made, listening), AsyncExitStack() as stack:
        await opened(stack, listening, 30)
        assert max(member.held() for member in made) - min(member.held() for member in made) <= 4


async def test_a_process_that_does_not_accept_delays_the_others_only_for_a_moment() -> None:
    async with members(1, idle=1) as (made, listening), AsyncExitStack() as stack:
        await opened(stack, listening, 20)
        assert made[0].held() == 20


@pytest.mark.parametrize("drained", [True, False])
async def test_a_server_that_stops_completes_its_requests_and_leaves_the_others_the_new_ones(*, drained: bool) -> None:
    release = asyncio.Event()

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await release.wait()
        await answer(send, 200, b"done")

    async with members(2, app) as (made, listening), AsyncExitStack() as stack:
        connections = await opened(stack, listening, 4)
        for connection in connections:
            await connection.send(request("GET", "/slow"))
        stopping, other = made if made[0].held() else made[::-1]
        if drained:
            stopping.drain.set()
        stopping.stop.set()
        await until(lambda: stopping.server.acceptor._listening.fileno() < 0, within=PATIENCE)
        before = other.held()
        await opened(stack, listening, 4)
        assert other.held() == before + 4 > stopping.held()
        assert not other.share.another_holds_fewer(), "it must not wait for a process that does not accept"
        release.set()
        for connection in connections:
            assert await connection.answer() == (200, b"done")
        await until(lambda: not stopping.held(), within=PATIENCE)
        assert not other.share.another_holds_fewer()
