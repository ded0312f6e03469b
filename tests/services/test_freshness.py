"""Freshness is that of the stored heartbeat, which one query per second reads for all requests."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typing_extensions import override

from app.base.clock import SystemClock
from app.db.installation import heartbeats
from app.db.installation.heartbeats import Heartbeat
from app.db.postgres.errors import DatabaseUnavailable
from app.services.reading.freshness import Freshness, FreshnessReader

STALE_AFTER = timedelta(seconds=30)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock(SystemClock):
    def __init__(self) -> None:
        self.seconds = 1000.0

    @override
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    @override
    def monotonic(self) -> float:
        return self.seconds


class Store:
    """A heartbeat of the present moment, which is read when the test answers the query."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queries: deque[asyncio.Future[None]] = deque()
        self.started = 0

    async def read(self, _db: Any) -> Heartbeat | None:
        self.started += 1
        query = asyncio.get_running_loop().create_future()
        self.queries.append(query)
        await query
        return Heartbeat(observed_at=self.clock.now(), epoch=1, state="Running", message="")

    def answer(self, error: Exception | None = None) -> None:
        query = self.queries.popleft()
        if error is None:
            query.set_result(None)
        else:
            query.set_exception(error)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store(clock)
    monkeypatch.setattr(heartbeats, "read", found.read)
    return found


@pytest.fixture
def reader(clock: Clock) -> FreshnessReader:
    return FreshnessReader(None, clock, STALE_AFTER)  # type: ignore[arg-type]


async def started(requests: Sequence[asyncio.Task[Freshness]]) -> None:
    """Return when each of the requests is done or waits."""
    for _ in range(3 * len(requests)):
        await asyncio.sleep(0)


async def answered(reader: FreshnessReader, store: Store, requests: int, error: Exception | None = None) -> list[bool]:
    """Send requests at once, answer the query of one of them, and return which of them report stale."""
    async with asyncio.TaskGroup() as group:
        sent = [group.create_task(reader.read()) for _ in range(requests)]
        await started(sent)
        store.answer(error)
    return [task.result().stale for task in sent]


async def test_the_first_requests_wait_for_the_first_heartbeat(reader: FreshnessReader, store: Store) -> None:
    assert await answered(reader, store, 3) == [False] * 3
    assert store.started == 1


async def test_no_request_gets_an_outdated_heartbeat_after_a_pause(
    reader: FreshnessReader, store: Store, clock: Clock
) -> None:
    await answered(reader, store, 1)
    clock.seconds += 600
    assert await answered(reader, store, 3) == [False] * 3
    assert store.started == 2


async def test_a_recent_heartbeat_is_used_while_the_next_one_is_read(
    reader: FreshnessReader, store: Store, clock: Clock
) -> None:
    await answered(reader, store, 1)
    clock.seconds += 1.5
    async with asyncio.TaskGroup() as group:
        refreshing, other = tasks = [group.create_task(reader.read()) for _ in range(2)]
        await started(tasks)
        assert (refreshing.done(), other.done()) == (False, True)
        store.answer()


async def test_the_next_request_reads_the_heartbeat_if_the_first_one_is_cancelled(
    reader: FreshnessReader, store: Store
) -> None:
    async with asyncio.TaskGroup() as group:
        cancelled, other = tasks = [group.create_task(reader.read()) for _ in range(2)]
        await started(tasks)
        cancelled.cancel()
        await started(tasks)
        del store.queries[0]
        store.answer()
    assert not other.result().stale


async def test_a_database_that_does_not_answer_is_queried_once_per_second(
    reader: FreshnessReader, store: Store, clock: Clock
) -> None:
    await answered(reader, store, 1)
    clock.seconds += 60
    assert await answered(reader, store, 3, DatabaseUnavailable("down")) == [True] * 3
    assert (await reader.read()).observed_at == START + timedelta(seconds=1000)
    assert store.started == 2
    clock.seconds += 1
    assert await answered(reader, store, 1) == [False]
