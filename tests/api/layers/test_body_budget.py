"""The memory for request bodies is bounded, for each body and for all bodies together."""

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from starlette.types import Message, Receive, Scope, Send

from app.api.http_settings import HttpSettings
from app.api.layers import protection
from app.api.layers.body_budget import BodyRefused, ExceededLimit, IncomingBody, body_memory
from app.api.layers.protection import ProtectionLayer
from app.fairness import byte_budget, fair_memory
from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.fairness.fair_memory import FairMemory
from tests.support.gateways.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.machine.raw_http import Connection, request
from tests.support.waiting import until

LIMIT = 64 * 1024
AT_ONCE = 96 * 1024
PATIENCE = 120.0
JSON = "Content-Type: application/json"
LARGE = json.dumps(manifest("large")).encode() + b" " * (LIMIT - 1024)
UNFINISHED = request("POST", jobs_path(), JSON, body=LARGE)[:-1]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> FairMemory:
    """The memory of the gateway: one large body of a caller."""
    made = body_memory(AT_ONCE, LIMIT)
    monkeypatch.setattr(protection, "body_memory", lambda *_: made)
    return made


@pytest_asyncio.fixture
async def bounded(database_url: str, memory: FairMemory) -> AsyncIterator[Gateway]:
    settings = HttpSettings(max_body_bytes=LIMIT, max_bodies_bytes=memory.budget.max_bytes)
    async with running_gateway(database_url, settings=settings) as running:
        yield running


@asynccontextmanager
async def connected(gateway: Gateway) -> AsyncIterator[Connection]:
    parts = urlsplit(gateway.url)
    async with Connection(*await asyncio.open_connection(parts.hostname, parts.port)) as connection:
        yield connection


async def submitted(gateway: Gateway, body: bytes) -> tuple[int, bytes]:
    async with connected(gateway) as connection:
        await connection.send(request("POST", f"{jobs_path()}?dryRun=All", JSON, body=body))
        return await connection.answer()


async def test_a_large_body_waits_for_memory_and_a_small_one_does_not(
    bounded: Gateway, memory: FairMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", PATIENCE)
    async with connected(bounded) as connection, asyncio.TaskGroup() as group:
        await connection.send(UNFINISHED)
        await until(lambda: memory.budget.held == len(LARGE), what="the first body to have memory")
        waiting = [group.create_task(submitted(bounded, LARGE)) for _ in range(3)]
        assert (await submitted(bounded, json.dumps(manifest("small")).encode()))[0] == 200
        assert not any(request.done() for request in waiting)
        await connection.send(b" ")
        assert (await connection.answer())[0] == 201
        assert [(await request)[0] for request in waiting] == [200, 200, 200]
    await until(lambda: memory.budget.held == 0, what="the memory to be free")


async def test_a_large_body_is_refused_if_there_is_no_memory_in_time(
    bounded: Gateway, memory: FairMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", PATIENCE)
    monkeypatch.setattr(fair_memory, "WAIT_SECONDS", 0.01)
    async with connected(bounded) as connection:
        await connection.send(UNFINISHED)
        await until(lambda: memory.budget.held == len(LARGE), what="the first body to have memory")
        status, answer = await submitted(bounded, LARGE)
        problem = json.loads(answer)
        assert status == 503
        assert problem["code"] == "TooManyBodies"
        assert f"use the {AT_ONCE} bytes" in problem["detail"]
        refused = await bounded.client.post(jobs_path(), content=LARGE, headers={"Content-Type": "application/json"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    await until(lambda: memory.budget.held == 0, what="the memory to be free")
    assert (await submitted(bounded, LARGE))[0] == 200


async def test_a_stream_does_not_hold_the_memory_of_its_body(bounded: Gateway, memory: FairMemory) -> None:
    async with connected(bounded) as first, connected(bounded) as second, connected(bounded) as third:
        for connection in (first, second, third):
            await connection.send(request("GET", "/api/v1/jobs/watch", body=LARGE))
            async with asyncio.timeout(PATIENCE):
                assert (await connection.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        await until(lambda: memory.budget.held == 0, what="the memory to be free")
        assert (await submitted(bounded, LARGE))[0] == 200


async def test_a_slow_body_is_evicted(bounded: Gateway, memory: FairMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets the error at once, not only when the rest of the body has arrived."""
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", PATIENCE)
    monkeypatch.setattr(fair_memory, "_SEARCH_SECONDS", 0.01)
    async with connected(bounded) as connection, asyncio.TaskGroup() as group:
        await connection.send(UNFINISHED)
        await until(lambda: memory.budget.held == len(LARGE), what="the first body to have memory")
        newcomer = group.create_task(submitted(bounded, LARGE))
        monkeypatch.setattr(byte_budget, "GRACE_SECONDS", 0.0)
        assert (await newcomer)[0] == 200
        status, problem = await connection.answer()
        assert (status, json.loads(problem)["code"]) == (503, "TooManyBodies")


def messages(*lengths: int) -> Receive:
    """Return the function that receives a body in pieces of these lengths, and then waits for its client."""
    left = list(lengths)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b" " * left.pop(0), "more_body": bool(left)}

    return receive


@pytest.mark.parametrize(
    ("declared", "pieces", "held"),
    [
        (None, [UNCOUNTED_BYTES], 0),
        (None, [UNCOUNTED_BYTES, 1], LIMIT),
        (None, [UNCOUNTED_BYTES + 1], LIMIT),
        (20_000, [1, 19_999], 20_000),
        (LIMIT, [LIMIT], LIMIT),
    ],
)
async def test_a_body_holds_all_of_its_bytes_once_it_may_be_large(
    declared: int | None, pieces: list[int], held: int
) -> None:
    memory = body_memory(AT_ONCE, LIMIT)
    body, receive = IncomingBody(declared, LIMIT, memory), messages(*pieces)
    for _ in pieces:
        await body.next(receive)
    assert memory.budget.held == held
    body.release()
    assert memory.budget.held == 0
    if declared is not None:
        await body.next(messages(0))
        assert memory.budget.held == 0, "nobody releases it again"


@pytest.mark.parametrize(("pieces", "is_read"), [([LIMIT + 1], True), ([LIMIT, 1, 1], False)])
async def test_a_body_that_is_too_large_is_refused_at_its_first_byte_too_many(
    pieces: Sequence[int], *, is_read: bool
) -> None:
    body, receive = IncomingBody(None, LIMIT, body_memory(AT_ONCE, LIMIT)), messages(*pieces)
    for _ in pieces[:-2]:
        await body.next(receive)
    with pytest.raises(BodyRefused) as raised:
        await body.next(receive)
    assert (raised.value.exceeded, raised.value.is_read) == (ExceededLimit.ONE_BODY, is_read)


@pytest.mark.parametrize(
    ("since", "is_complete", "evicted"),
    [(float("-inf"), False, True), (float("inf"), False, False), (float("-inf"), True, False)],
    ids=["slow", "young", "complete"],
)
async def test_only_an_old_incomplete_body_is_evicted(
    *, since: float, is_complete: bool, evicted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_memory, "_SEARCH_SECONDS", 0.01)
    monkeypatch.setattr(fair_memory, "WAIT_SECONDS", PATIENCE if evicted else 0.1)
    memory = body_memory(AT_ONCE, LIMIT)
    old, new = IncomingBody(LIMIT, LIMIT, memory), IncomingBody(LIMIT, LIMIT, memory)
    if is_complete:
        await old.next(messages(LIMIT))
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_refusal(old))  # until its client sends more, or has gone
        await until(lambda: old.held == LIMIT, what="the first body to have memory")
        old.since = since
        assert await _refusal(new, messages(1)) is (None if evicted else ExceededLimit.ALL_BODIES)
        if evicted:
            assert await reading is ExceededLimit.ALL_BODIES
        reading.cancel()
    assert old.is_evicted is evicted
    assert memory.budget.held == LIMIT, "of one of them"


async def _refusal(body: IncomingBody, receive: Receive | None = None) -> ExceededLimit | None:
    try:
        await body.next(receive or messages())
    except BodyRefused as refused:
        return refused.exceeded
    return None


class Kept:
    """What a handler has of a body."""


async def test_a_refused_body_leaves_nothing_for_the_garbage_collector() -> None:
    """It would keep bodies of some megabytes until thousands of other objects are made."""
    handled: list[weakref.ref[Kept]] = []

    async def handler(_: Scope, receive: Receive, __: Send) -> None:
        kept = Kept()
        handled.append(weakref.ref(kept))
        while await receive():
            pass

    async def send(_: Message) -> None:
        pass

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"transfer-encoding", b"chunked")]}
    gc.disable()
    try:
        layer = ProtectionLayer(handler, guard=None, max_bytes=LIMIT, max_bytes_at_once=AT_ONCE)
        await layer(scope, messages(LIMIT, 1, 1), send)
        assert [reference() for reference in handled] == [None]
    finally:
        gc.enable()
