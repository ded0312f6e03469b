"""Requests that take the shortcut have the limits, the order and the ends of all other requests."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from app.http_server.limits import ConnectionStage, Overdue, ServerLimits, overdue
from app.http_server.shortcuts import Field, Handler, Respond, ShortAnswer, field_lines
from app.http_server.writes import PIECE
from tests.http_server.test_connections import BUFFER, PAGE, echo_path, one_connection, served
from tests.http_server.test_draining import CLOSE, head, serving, until_drained
from tests.support.raw_http import PATIENCE, Connection, request
from tests.support.waiting import until

GREETING = b"x-greeting: hello\r\n"


@dataclass
class Greeter:
    """A shortcut for GET of paths with the prefix /short, which answers with the path once it is released.

    `ended` contains the paths whose handlers have ended, and `seen` what the shortcut was given.
    """

    released: asyncio.Event = field(default_factory=asyncio.Event)
    body: bytes | None = None
    status: int = 200
    error: Exception | None = None
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    seen: list[tuple[bytes, bytes, Sequence[Field], str]] = field(default_factory=list)

    def __call__(self, method: bytes, target: bytes, fields: Sequence[Field], address: str) -> Handler | None:
        self.seen.append((method, target, list(fields), address))
        if method != b"GET" or not target.startswith(b"/short"):
            return None

        async def handle(respond: Respond) -> None:
            self.started.append(target.decode())
            try:
                await self.released.wait()
                if self.error is not None:
                    raise self.error
                await respond(ShortAnswer(self.status, GREETING, target if self.body is None else self.body))
            except asyncio.CancelledError:
                await respond(ShortAnswer(503, b"", b"late", closes=True))
            finally:
                self.ended.append(target.decode())

        return handle


def greeter(body: bytes | None = None, status: int = 200) -> Greeter:
    """A shortcut that answers at once."""
    made = Greeter(body=body, status=status)
    made.released.set()
    return made


async def test_a_shortcut_answers_in_place_of_the_application() -> None:
    short = greeter()
    async with served(echo_path, shortcut=short) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/short/a", "X-One: 1", "x-two: 2"))
        lines = (await head(client)).split(b"\r\n")
        assert lines[0] == b"http/1.1 200 ok"
        assert [line.partition(b":")[0] for line in lines[1:-2]] == [b"date", b"x-greeting", b"content-length"]
        assert await client.reader.readexactly(8) == b"/short/a"
        await client.send(request("POST", "/short/b"))
        assert await client.answer() == (200, b"/short/b")
        assert short.ended == ["/short/a"]
        fields = [(b"host", b"localhost"), (b"x-one", b"1"), (b"x-two", b"2")]
        assert short.seen[0] == (b"GET", b"/short/a", fields, "127.0.0.1")


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_has_no_content_has_no_length(status: int) -> None:
    async with served(echo_path, shortcut=greeter(b"", status)) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/short") + request("GET", "/next"))
        assert b"content-length" not in await head(client)
        assert await client.answer() == (200, b"/next")


async def test_pipelined_requests_are_answered_in_order() -> None:
    short = Greeter()
    paths = ["/short/1", "/app/2", "/short/3", "/short/4", "/app/5"]
    async with served(echo_path, shortcut=short) as address, await Connection.open(address) as client:
        await client.send(b"".join(request("GET", path) for path in paths))
        await until(lambda: short.started, within=PATIENCE)
        assert short.started == ["/short/1"], "the others wait for its answer"
        short.released.set()
        assert [await client.answer() for _ in paths] == [(200, path.encode()) for path in paths]


async def test_an_error_answer_follows_the_answer_of_a_shortcut() -> None:
    short = Greeter()
    async with served(echo_path, shortcut=short) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/short") + b"nonsense\r\n\r\n")
        await until(lambda: short.started, within=PATIENCE)
        short.released.set()
        assert await client.answer() == (200, b"/short")
        assert (await client.answer())[0] == 400
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "sent",
    [request("GET", "/short", "Connection: close"), request("GET", "/short").replace(b"HTTP/1.1", b"HTTP/1.0")],
    ids=["close", "1.0"],
)
async def test_the_connection_closes_if_the_client_wants_that(sent: bytes) -> None:
    async with served(echo_path, shortcut=greeter()) as address, await Connection.open(address) as client:
        await client.send(sent)
        assert CLOSE in await head(client)
        assert await client.rest() == b"/short"


async def test_the_last_answer_of_a_drained_connection_says_so() -> None:
    stop, short = asyncio.Event(), Greeter()
    async with serving(echo_path, stop, short) as address, await Connection.open(address) as client:
        await client.send(request("GET", "/short"))
        await until(lambda: short.started, within=PATIENCE)
        stop.set()
        await until_drained(address)
        short.released.set()
        assert CLOSE in await head(client)
        assert await client.rest() == b"/short"


async def test_the_end_of_the_server_cancels_a_handler_which_can_still_answer() -> None:
    short = Greeter()
    async with served(echo_path, shortcut=short) as address:
        client = await Connection.open(address)
        await client.send(request("GET", "/short"))
        await until(lambda: short.started, within=PATIENCE)
    async with client:
        assert await client.answer() == (503, b"late")
        assert await client.rest() == b""


async def test_a_client_that_leaves_ends_nothing_but_its_connection() -> None:
    short = Greeter()
    async with one_connection(echo_path, short) as (server, client):
        await client.send(request("GET", "/short"))
        await until(lambda: short.started, within=PATIENCE)
        assert server.stage is ConnectionStage.ANSWER
        client.writer.transport.abort()
        await until(lambda: server.cycle.disconnected, within=PATIENCE)
        short.released.set()
        await until(lambda: not server.server_state.tasks, within=PATIENCE)
        assert short.ended == ["/short"]
        assert not server.cycle.response_started


async def test_a_handler_that_fails_closes_its_connection() -> None:
    short = greeter()
    short.error = RuntimeError("broken")
    async with served(echo_path, shortcut=short) as address, await Connection.open(address) as client:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # it reports the exception of the task
        await client.send(request("GET", "/short"))
        assert await client.rest() == b""


async def test_the_next_answer_waits_for_a_client_that_does_not_read() -> None:
    short = greeter(PAGE)
    async with one_connection(echo_path, short) as (server, client):
        await client.send(request("GET", "/short/1") + request("GET", "/short/2"))
        await until(lambda: server.flow.write_paused, within=PATIENCE)
        assert server.transport.get_write_buffer_size() <= PIECE + BUFFER
        assert (short.started, short.ended) == (["/short/1"], [])
        began = asyncio.get_running_loop().time()
        assert overdue(server.state(began), ServerLimits()) is None
        assert overdue(server.state(began + 70), ServerLimits()) is Overdue.SEND
        assert [len((await client.answer())[1]) for _ in range(2)] == [len(PAGE)] * 2


@pytest.mark.parametrize("value", [b"a\r\nx-other: b", b"a\nb", b"\x00", b"\x7f"])
def test_a_field_cannot_begin_another_one(value: bytes) -> None:
    with pytest.raises(ValueError, match="control characters"):
        field_lines([(b"x-one", value)])
