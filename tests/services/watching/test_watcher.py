"""The watcher of the feed: events in memory, reads from Postgres, and the start of another epoch."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from app.db.feed import entries
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.access.namespaces import NamespaceSet
from app.services.watching import watcher as watching
from app.services.watching.positions import Interest, Position
from app.services.watching.watcher import Watcher
from tests.support.telemetry.metrics import value
from tests.support.waiting import until

JOB = UUID(int=1)


async def happen(db: Database, count: int, job: UUID = JOB, namespace: str = "team", resource: str = "jobs") -> None:
    async with db.begin() as connection:
        await connection.execute(
            "INSERT INTO job_events (at, type, namespace, job_uid, version, resource) "
            "SELECT now(), 'status', $1, $2, n, $4 FROM generate_series(1, $3::int) AS n",
            namespace, job, count, resource,
        )  # fmt: skip
    await entries.publish(db, 10_000)


@asynccontextmanager
async def following(db: Database) -> AsyncIterator[Watcher]:
    async def hint() -> None:
        await asyncio.sleep(0.01)

    watcher = Watcher(db, hint)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(watcher.run())
        await watcher.begin()
        yield watcher
        running.cancel()


async def reach(watcher: Watcher, seq: int) -> None:
    await until(lambda: watcher.position, lambda position: position.seq >= seq, what=f"the position {seq}")


async def drain(watcher: Watcher, start: Position, interest: Interest) -> list[int]:
    """Return the sequence numbers of the events from `start` to the end of the feed."""
    seen: list[int] = []
    while (found := await watcher.after(start, interest)) is not None:
        events, upto = found
        seen += [event.seq for event in events]
        if upto == start:
            return seen
        start = upto
    raise AssertionError("the feed could not go on")


@pytest.mark.parametrize("kept", [10_000, 5])
async def test_every_event_is_read_once_from_memory_or_from_postgres(
    kept: int, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_KEPT", kept)
    monkeypatch.setattr(watching, "_BATCH", 7)
    async with following(db) as watcher:
        start = await watcher.begin()
        await happen(db, 20)
        await happen(db, 3, job=uuid4(), namespace="other")
        await reach(watcher, start.seq + 23)
        assert value("jobgate_feed_follower_position") == start.seq + 23
        first = start.seq + 1
        assert await drain(watcher, start, Interest()) == list(range(first, first + 23))
        assert await drain(watcher, start, Interest(job_uid=JOB)) == list(range(first, first + 20))
        only = Interest(namespaces=NamespaceSet.of("other"))
        assert await drain(watcher, start, only) == list(range(first + 20, first + 23))
        assert await drain(watcher, start, Interest(namespaces=NamespaceSet.of())) == []


async def test_a_waiter_gets_the_events_of_its_resources(db: Database) -> None:
    async with following(db) as watcher:
        start = await watcher.begin()
        sets = Interest(resources=frozenset({"samplesets"}))
        one = Interest(
            job_uid=JOB, namespaces=NamespaceSet.of("team"), resources=frozenset({"samplesets", "samplejobs"})
        )
        with watcher.waiting(sets) as waiter:
            await happen(db, 1)
            await happen(db, 1, resource="samplejobs")
            await reach(watcher, start.seq + 2)
            assert not await waiter.wait(0.05)
            await happen(db, 1, resource="samplesets")
            assert await waiter.wait(60)
        await happen(db, 1, job=uuid4(), resource="samplesets")
        await reach(watcher, start.seq + 4)
        for interest, expected in ((Interest(), [1]), (sets, [3, 4]), (one, [2, 3])):
            assert await drain(watcher, start, interest) == [start.seq + number for number in expected]


async def test_a_waiter_is_woken_only_by_events_of_its_interest(db: Database) -> None:
    async with following(db) as watcher:
        with (
            watcher.waiting(Interest(job_uid=JOB)) as one,
            watcher.waiting(Interest(namespaces=NamespaceSet.of("x"))) as two,
        ):
            await happen(db, 1)
            assert await one.wait(60)
            assert not await one.wait(0.05)
            assert not await two.wait(0.05)
            watcher.close()
            assert await two.wait(60)


async def test_a_position_before_the_truncated_part_cannot_continue(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_KEPT_AT_START", 0)
    await happen(db, 10)
    async with following(db) as watcher:
        now = await watcher.begin()
        assert await watcher.after(Position(epoch=now.epoch, seq=0), Interest()) is not None
        async with db.begin() as connection:
            await connection.execute("DELETE FROM job_events WHERE seq <= 6")
            await connection.execute("UPDATE feed SET first = 7")
        assert await watcher.after(Position(epoch=now.epoch, seq=3), Interest()) is None
        assert await watcher.after(Position(epoch=now.epoch, seq=6), Interest()) is not None
        assert await watcher.after(Position(epoch=now.epoch + 1, seq=10), Interest()) is None
        assert await watcher.after(Position(epoch=now.epoch, seq=11), Interest()) is None


async def test_another_epoch_wakes_every_waiter(db: Database) -> None:
    await happen(db, 5)
    async with following(db) as watcher:
        before = await watcher.begin()
        with watcher.waiting(Interest(job_uid=JOB)) as waiter:
            async with db.begin() as connection:
                await connection.execute("UPDATE feed SET epoch = epoch + 1")
            assert await waiter.wait(60)
        now = watcher.position
        assert now is not None
        assert now.epoch == before.epoch + 1
        assert await watcher.after(before, Interest()) is None


async def test_the_watcher_survives_lost_connections(db: Database) -> None:
    async with following(db) as watcher:
        async with db.read() as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        start = watcher.position
        assert start is not None
        await until(lambda: could_write(db))
        await reach(watcher, start.seq + 2)


async def could_write(db: Database) -> bool:
    """Return False while the pool still returns terminated connections."""
    try:
        await happen(db, 2)
    except DatabaseUnavailable:
        return False
    return True


async def test_a_watcher_that_pauses_after_an_error_stops_at_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()

    class FailureLog:
        def warning(self, *_: object, **__: object) -> None:
            failed.set()

    async def read(*_: object) -> entries.FeedPage:
        raise DatabaseUnavailable("no answer")

    async def hint() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(entries, "read", read)
    # The pause follows the line of the log, without an await between them.
    monkeypatch.setattr(watching, "log", FailureLog())
    monkeypatch.setattr(watching, "_PAUSE_AFTER_ERROR", 3600.0)
    running = asyncio.get_running_loop().create_task(Watcher(db, hint).run())
    async with asyncio.timeout(60):
        await failed.wait()
    running.cancel()
    await asyncio.wait({running}, timeout=60)
    assert running.cancelled()
