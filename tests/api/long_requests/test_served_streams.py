"""The waker writes events that are rendered already to the streams that wait, without a gap, a duplicate or a wait."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from starlette.types import Message

from app.api.layers.answer import OutgoingAnswer
from app.api.long_requests import streams
from app.api.long_requests.responses import LongResponse
from app.api.long_requests.streams import EVENT_STREAM
from app.domain.vocabulary import JobPhase
from app.services.limits.long_requests import EndReason
from app.services.watching.positions import Position
from app.services.watching.waking import Waiter
from tests.api.long_requests.test_object_watch import NOW
from tests.api.long_requests.test_watch import Event, stream, take
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, until_followed, until_open
from tests.support.machine.raw_http import Connection, request
from tests.support.waiting import until

ALL = "/api/v1/jobs/watch"
LINES = "application/jsonl"
PATIENCE = 60.0  # seconds for events that have been sent
LARGE = "x" * 100_000


@dataclass
class Late:
    """Two equal streams. The first renders each event. The wake-ups of the second, whose client reads the raw bytes,
    are kept until the test permits them, so that its events are rendered already.

    `sent` has the result of each attempt to write to the second stream while its task waits.
    """

    gateway: Gateway
    first: AsyncIterator[Event]
    connection: Connection
    waiter: Waiter
    is_lines: bool
    sent: list[bool]
    kept: list[Callable[[], None]] = field(default_factory=list)

    async def until_waiting(self) -> None:
        await until(lambda: self.waiter._sleep is not None, what="the task of the stream waits")

    def wake(self) -> None:
        """Permit the wake-ups that were kept."""
        kept, self.kept = self.kept, []
        for wake in kept:
            wake()

    async def change(self, uid: str, **status: Any) -> Event:
        """Change a job, and return the event that the first stream receives."""
        await self.gateway.conclude(uid, status)
        (event,) = await take(self.first, 1)
        await until(lambda: self.kept, what="the second stream is to be woken")
        return event

    async def served(self, uid: str, **status: Any) -> Event:
        """Change a job, and permit the second stream to be woken."""
        await self.until_waiting()
        before, event = len(self.sent), await self.change(uid, **status)
        self.wake()
        await until(lambda: len(self.sent) > before, what="an attempt to write to the second stream")
        return event

    async def piece(self) -> bytes:
        """Return the next piece that the client of the second stream receives; empty at the end."""
        size = int(await self.connection.reader.readline(), 16)
        data = await self.connection.reader.readexactly(size)
        await self.connection.reader.readexactly(2)
        return data

    async def events(self, count: int) -> list[Event]:
        found: list[Event] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                found += parsed(await self.piece(), is_lines=self.is_lines)
        return found


def parsed(piece: bytes, *, is_lines: bool) -> list[Event]:
    if is_lines:
        return [Event(each["id"], each["event"], each["data"]) for each in map(json.loads, piece.splitlines())]
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in piece.decode().split("\n\n")]
    return [Event(each["id"], each["event"], json.loads(each["data"])) for each in blocks if "event" in each]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return the results of all attempts to write to a stream while its task waits. No ping lets the task run."""
    monkeypatch.setattr(streams, "_PING_SECONDS", 600.0)
    results: list[bool] = []
    send = LongResponse.send_at_once

    def noted(response: LongResponse, piece: bytes) -> bool:
        results.append(send(response, piece))
        return results[-1]

    monkeypatch.setattr(LongResponse, "send_at_once", noted)
    return results


async def late(
    gateway: Gateway, streams: AsyncExitStack, sent: list[bool], path: str, accept: str = EVENT_STREAM, begun: int = 1
) -> Late:
    """Open two streams. Each begins with this number of events."""
    waker = gateway.services.watcher.waker
    wake = waker.wake
    first = await streams.enter_async_context(stream(gateway, path))
    await take(first, begun)
    known = waiters(gateway)
    connection = await Connection.open(("127.0.0.1", int(gateway.url.rpartition(":")[2])), receive_buffer=4096)
    await streams.enter_async_context(connection)
    await connection.send(request("GET", path, f"Accept: {accept}"))
    await connection.reader.readuntil(b"\r\n\r\n")
    (waiter,) = waiters(gateway) - known
    opened = Late(gateway, first, connection, waiter, accept == LINES, sent)
    await opened.events(begun)
    await opened.until_waiting()

    def keep(woken: Iterable[Waiter], changed_after: Position | None = None) -> None:
        others = set(woken)
        if waiter in others:
            others.remove(waiter)
            opened.kept.append(partial(wake, [waiter], changed_after))
        wake(others, changed_after)

    waker.wake = keep  # type: ignore[assignment, method-assign]
    return opened


async def watched(gateway: Gateway) -> str:
    """Submit a job, wait until its event is read, and return its uid."""
    uid = str((await gateway.submit("watched"))["uid"])
    await until_followed(gateway)
    return uid


def waiters(gateway: Gateway) -> set[Waiter]:
    return {waiter for group in gateway.services.watcher._waiters.values() for waiter in group}


@pytest.mark.parametrize("accept", [EVENT_STREAM, LINES])
@pytest.mark.parametrize("path", [ALL, f"{ALL}?namespace={NAMESPACE}"])
async def test_events_that_are_rendered_already_are_written_while_the_task_waits(
    path: str, accept: str, gateway: Gateway, sent: list[bool]
) -> None:
    uid = await watched(gateway)
    async with AsyncExitStack() as streams:
        second = await late(gateway, streams, sent, path, accept)
        events = [await second.served(uid, message=str(number)) for number in range(3)]
        assert await second.events(3) == events
    assert sent == [True] * 3


async def test_a_client_that_stops_and_then_continues_to_read_receives_each_event_once(
    gateway: Gateway, sent: list[bool]
) -> None:
    uid = await watched(gateway)
    async with AsyncExitStack() as streams:
        second = await late(gateway, streams, sent, ALL)
        events: list[Event] = []
        while False not in sent and len(events) < 200:
            events.append(await second.served(uid, message=f"{len(events)} {LARGE}"))
        assert sent == [True] * (len(sent) - 1) + [False]
        for _ in range(3):  # while the task waits for room
            events.append(await second.change(uid, message=f"{len(events)} {LARGE}"))
            second.wake()
        received = await second.events(len(events))
        assert [event.id for event in received] == [event.id for event in events]
        assert received == events
        sent.clear()
        last = await second.served(uid, message="last")
        assert await second.events(1) == [last]
        assert sent == [True]


async def test_the_stream_of_one_job_ends_after_its_last_event(gateway: Gateway, sent: list[bool]) -> None:
    uid = await watched(gateway)
    async with AsyncExitStack() as streams:
        second = await late(gateway, streams, sent, jobs_path(NAMESPACE, "watched", "watch"), begun=2)
        running = await second.served(uid, phase=JobPhase.RUNNING)
        ended = await second.served(uid, phase=JobPhase.SUCCEEDED, finished_at=NOW, quiet=True)
        *events, end = await second.events(3)
        assert (events, end.name) == ([running, ended], "end")
        assert await second.piece() == b""
    assert sent == [True, True]


async def test_a_stream_whose_access_has_ended_is_sent_no_event(gateway: Gateway, sent: list[bool]) -> None:
    uid = await watched(gateway)
    async with AsyncExitStack() as streams:
        before = set(gateway.services.long_requests._open)
        second = await late(gateway, streams, sent, ALL)
        await second.change(uid, message="secret")
        opened = [request for request in gateway.services.long_requests._open if request not in before]
        for request in opened:
            request.end(EndReason.REVOKED)
        second.waiter.wake()  # before the task of the stream notices the end
        assert [event.name for event in await second.events(1)] == ["denied"]
        assert await second.piece() == b""
        await until_open(gateway, 0)
    assert sent == [False]


async def test_a_piece_that_the_server_did_not_take_does_not_count_as_sent() -> None:
    has_room = asyncio.Event()

    async def send(_: Message) -> None:
        await has_room.wait()

    async def receive() -> Message:
        raise AssertionError

    answer, message = OutgoingAnswer(receive, send), {"type": "http.response.body", "body": b"piece", "more_body": True}
    sending = answer.send(message).__await__()
    next(sending)
    sending.close()
    assert answer.size == 0
    has_room.set()
    await answer.send(message)
    assert answer.size == len(b"piece")
