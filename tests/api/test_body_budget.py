"""The memory for request bodies is bounded, for each body and for all bodies together."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from starlette.types import Message

from app.api.layers import protection
from app.api.layers.body_budget import ExceededLimit, IncomingBody
from app.api.settings import HttpSettings
from app.fairness import byte_budget
from app.fairness.byte_budget import GRACE_SECONDS, UNCOUNTED_BYTES, ByteBudget
from tests.support.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.raw_http import Connection, request
from tests.support.waiting import until

LIMIT = 64 * 1024
AT_ONCE = 96 * 1024
PATIENCE = 120.0
JSON = "Content-Type: application/json"
LARGE = json.dumps(manifest("large")).encode() + b" " * (LIMIT - 1024)


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> ByteBudget:
    """The budget of the gateway."""
    made = ByteBudget(AT_ONCE)
    monkeypatch.setattr(protection, "ByteBudget", lambda _: made)
    return made


@pytest_asyncio.fixture
async def bounded(database_url: str, budget: ByteBudget) -> AsyncIterator[Gateway]:
    settings = HttpSettings(max_body_bytes=LIMIT, max_bodies_bytes=budget.max_bytes)
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


async def test_a_large_body_is_refused_while_the_budget_is_used_and_a_small_one_is_not(
    bounded: Gateway, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", PATIENCE)
    unfinished = request("POST", jobs_path(), JSON, body=LARGE)[:-1]
    async with connected(bounded) as connection:
        await connection.send(unfinished)
        await until(lambda: budget.held == len(LARGE) - 1)
        status, answer = await submitted(bounded, LARGE)
        problem = json.loads(answer)
        assert status == 503
        assert problem["code"] == "TooManyBodies"
        assert f"more than {AT_ONCE} bytes" in problem["detail"]
        refused = await bounded.client.post(jobs_path(), content=LARGE, headers={"Content-Type": "application/json"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert (await submitted(bounded, json.dumps(manifest("small")).encode()))[0] == 200
    await until(lambda: budget.held == 0)
    assert (await submitted(bounded, LARGE))[0] == 200


async def test_a_stream_does_not_hold_the_memory_of_its_body(bounded: Gateway) -> None:
    async with connected(bounded) as first, connected(bounded) as second, connected(bounded) as third:
        for connection in (first, second, third):
            await connection.send(request("GET", "/api/v1/jobs/watch", body=LARGE))
            async with asyncio.timeout(PATIENCE):
                assert (await connection.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert (await submitted(bounded, LARGE))[0] == 200


@pytest.mark.parametrize(
    ("pieces", "found", "held"),
    [
        ([UNCOUNTED_BYTES], None, 0),
        ([UNCOUNTED_BYTES, 1], None, UNCOUNTED_BYTES + 1),
        ([AT_ONCE // 2, AT_ONCE // 2], None, AT_ONCE),
        ([AT_ONCE // 2, AT_ONCE // 2 + 1], ExceededLimit.ALL_BODIES, AT_ONCE // 2),
        ([2 * AT_ONCE + 1], ExceededLimit.ONE_BODY, 0),
    ],
)
def test_bodies_count_as_they_arrive(pieces: list[int], found: ExceededLimit | None, held: int) -> None:
    budget = ByteBudget(AT_ONCE)
    receipt = IncomingBody(2 * AT_ONCE, budget, since=0)
    assert [receipt.add(count, now=0) for count in pieces][-1] is found
    assert budget.held == held
    receipt.release()
    assert budget.held == 0
    assert receipt.add(1, now=0) is (ExceededLimit.ONE_BODY if found is ExceededLimit.ONE_BODY else None)
    assert budget.held == 0


async def test_a_slow_body_is_evicted(bounded: Gateway, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets the error at once, not only when the rest of the body has arrived."""
    unfinished = request("POST", jobs_path(), JSON, body=LARGE)[:-1]
    async with connected(bounded) as connection:
        monkeypatch.setattr(byte_budget, "GRACE_SECONDS", PATIENCE)
        await connection.send(unfinished)
        await until(lambda: budget.held == len(LARGE) - 1)
        assert (await submitted(bounded, LARGE))[0] == 503
        monkeypatch.setattr(byte_budget, "GRACE_SECONDS", 0.0)
        assert (await submitted(bounded, LARGE))[0] == 200
        status, problem = await connection.answer()
        assert (status, json.loads(problem)["code"]) == (503, "TooManyBodies")


@pytest.mark.parametrize(
    ("age", "is_complete", "evicted"),
    [(GRACE_SECONDS, False, True), (GRACE_SECONDS - 0.1, False, False), (GRACE_SECONDS, True, False)],
    ids=["slow", "young", "complete"],
)
async def test_only_an_old_incomplete_body_is_evicted(*, age: float, is_complete: bool, evicted: bool) -> None:
    budget = ByteBudget(AT_ONCE)
    old, new = IncomingBody(AT_ONCE, budget, since=0), IncomingBody(AT_ONCE, budget, since=age)
    requested: asyncio.Queue[None] = asyncio.Queue()
    pieces: asyncio.Queue[Message] = asyncio.Queue()

    async def receive() -> Message:
        requested.put_nowait(None)
        return await pieces.get()

    async def read() -> None:
        await old.next(receive)
        await old.next(receive)

    assert old.add(AT_ONCE, now=0) is None
    reading = asyncio.get_running_loop().create_task(read())
    pieces.put_nowait({"type": "http.request", "body": b"", "more_body": not is_complete})
    await requested.get()
    await requested.get()
    assert new.add(UNCOUNTED_BYTES + 1, now=age) is (None if evicted else ExceededLimit.ALL_BODIES)
    assert budget.held == (UNCOUNTED_BYTES + 1 if evicted else AT_ONCE)
    if not evicted:
        pieces.put_nowait({"type": "http.disconnect"})
    with pytest.raises(TimeoutError) if evicted else nullcontext():
        await reading
    assert old.is_evicted is evicted
