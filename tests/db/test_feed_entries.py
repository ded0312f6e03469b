"""Readers of the feed see every change once, in one order, however the writers commit."""

import asyncio
import random
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from app.db.feed import changes, entries
from app.db.feed.entries import Bounds
from app.db.feed.publisher import Publisher
from app.db.postgres.engine import Database
from app.db.postgres.notifications import FEED, Listener, Notifier
from app.db.postgres.timeouts import DatabaseTimeouts
from tests.db.factories import later, new_job, submitted
from tests.support.waiting import until


async def write(db: Database, namespace: str = "team-a", uid: UUID | None = None, *, version: int = 1) -> UUID:
    uid = uid or uuid4()
    async with db.begin() as connection:
        await changes.announce(connection, changes.STATUS, [(namespace, uid, version)])
    return uid


async def publish_all(db: Database) -> int:
    total = 0
    while published := await entries.publish(db, 100):
        total += published
    return total


async def test_an_uncommitted_entry_has_no_number_and_follows_later(db: Database) -> None:
    slow = uuid4()
    async with db.begin() as connection:
        await changes.announce(connection, changes.STATUS, [("team-a", slow, 1)])
        fast = await write(db)
        assert await publish_all(db) == 1
        page = await entries.read(db, 0, 10)
        assert [(event.seq, event.job_uid) for event in page.events] == [(1, fast)]
    assert await publish_all(db) == 1
    page = await entries.read(db, page.upto, 10)
    assert [(event.seq, event.job_uid) for event in page.events] == [(2, slow)]


async def test_an_announcement_without_a_resource_is_about_a_job(db: Database) -> None:
    await write(db)
    async with db.begin() as connection:
        await changes.announce(connection, changes.STATUS, [("team-a", uuid4(), 1)], resource="samplesets")
    assert await publish_all(db) == 2
    assert [event.resource for event in (await entries.read(db, 0, 10)).events] == ["jobs", "samplesets"]


async def test_one_publisher_at_a_time(db: Database) -> None:
    await write(db)
    async with db.begin() as connection:
        assert await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", entries.PUBLISHER_LOCK)
        assert await entries.publish(db) is None
    assert await entries.publish(db) == 1
    assert await entries.publish(db) == 0


async def test_numbering_takes_three_round_trips(database_url: str) -> None:
    statements: list[str] = []
    alone = await Database.open(database_url, pool_size=1)
    await entries.publish(alone)  # the driver reads the types of a statement when it prepares it
    await write(alone)
    async with alone.read() as connection:
        connection.add_query_logger(lambda record: statements.append(record.query))
    assert await entries.publish(alone) == 1
    await alone.close()
    assert len(statements) == 3, statements


async def slow_writer(db: Database, number: int, writes: int) -> None:
    """One job's changes, each committed some time after its row was written."""
    chance = random.Random(number)
    uid = uuid4()
    for version in range(1, writes + 1):
        async with db.begin() as connection:
            await changes.announce(connection, changes.STATUS, [("team-a", uid, version)])
            await connection.execute("SELECT pg_sleep($1)", chance.random() * 0.02)


async def follow(db: Database, count: int) -> list[tuple[int, UUID, int]]:
    seen: list[tuple[int, UUID, int]] = []
    upto = 0

    async def read() -> int:
        nonlocal upto
        page = await entries.read(db, upto, 7)
        seen.extend((event.seq, event.job_uid, event.version) for event in page.events)
        upto = page.upto
        return len(seen)

    await until(read, lambda number: number >= count, what=f"{count} entries", within=120, every=0.001)
    return seen


async def test_readers_see_one_gap_free_order_while_many_write_and_several_publish(db: Database) -> None:
    writers, writes = 6, 25
    total = writers * writes
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        publishers = [Publisher(db, Notifier(db), poll=0.005, batch=9) for _ in range(3)]
        running = [tasks.create_task(publisher.run()) for publisher in publishers]
        readers = [tasks.create_task(follow(db, total)) for _ in range(3)]
        await asyncio.gather(*(slow_writer(db, number, writes) for number in range(writers)))
        seen = await asyncio.gather(*readers)
        for task in running:
            task.cancel()
    assert seen[0] == seen[1] == seen[2]
    assert [seq for seq, _, _ in seen[0]] == list(range(1, total + 1))
    for job in {uid for _, uid, _ in seen[0]}:
        assert [version for _, uid, version in seen[0] if uid == job] == list(range(1, writes + 1))


async def test_a_full_page_ends_with_its_last_entry(db: Database) -> None:
    for _ in range(3):
        await write(db)
    await publish_all(db)
    pages = [await entries.read(db, after, 2) for after in (0, 2, 3)]
    assert [(page.upto, [event.seq for event in page.events]) for page in pages] == [(2, [1, 2]), (3, [3]), (3, [])]


async def test_deleting_old_entries_moves_the_first_bound(db: Database) -> None:
    assert (await entries.bounds(db)).continues((await entries.bounds(db)).epoch, 0)
    for _ in range(10):
        await write(db)
    await publish_all(db)
    waiting = await write(db)
    now = await entries.bounds(db)
    assert (now.first, now.last) == (1, 10)
    assert await entries.forget(db, before=later(-1e9), keep=0, limit=100) == 0
    assert await entries.forget(db, before=later(1e9), keep=100, limit=100) == 0
    assert await entries.forget(db, before=later(1e9), keep=4, limit=3) == 3
    assert await entries.forget(db, before=later(1e9), keep=4, limit=100) == 3
    assert await entries.bounds(db) == replace(now, first=7)
    page = await entries.read(db, 0, 100)
    assert [event.seq for event in page.events] == [7, 8, 9, 10]
    assert not page.bounds.continues(now.epoch, 5)
    assert page.bounds.continues(now.epoch, 6)
    assert await entries.forget(db, before=later(1e9), keep=0, limit=100) == 4
    assert await entries.bounds(db) == replace(now, first=11)
    assert await entries.publish(db) == 1
    assert [(event.seq, event.job_uid) for event in (await entries.read(db, 10, 10)).events] == [(11, waiting)]


@pytest.mark.parametrize(
    ("epoch", "after", "continues"), [(1, 4, True), (1, 9, True), (1, 3, False), (1, 10, False), (2, 5, False)]
)
def test_a_reader_can_continue_only_within_the_bounds(epoch: int, after: int, *, continues: bool) -> None:
    assert Bounds(epoch=1, first=5, last=9).continues(epoch, after) is continues


@pytest.mark.parametrize(("interval", "again"), [(3600.0, False), (0.0, True)])
async def test_commits_during_the_pause_of_a_publisher_wait_for_its_end(
    db: Database, monkeypatch: pytest.MonkeyPatch, interval: float, *, again: bool
) -> None:
    calls = 0

    async def publish(*_: object) -> int:
        nonlocal calls
        calls += 1
        publisher.hint()  # a commit that this publication does not see
        return 0

    monkeypatch.setattr(entries, "publish", publish)
    publisher = Publisher(db, Notifier(db), poll=3600, interval=interval)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(publisher.run())
        for _ in range(100):
            await asyncio.sleep(0)
        running.cancel()
    assert calls >= 1
    assert (calls > 1) is again


async def test_a_submission_reaches_a_listener_in_another_pool(db: Database, database_url: str) -> None:
    listener = Listener(database_url, DatabaseTimeouts())
    notifier = Notifier(db)
    publisher = Publisher(db, notifier, poll=60)
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(part.run()) for part in (listener, notifier, publisher)]
        with listener.subscribe(FEED) as hints:
            await listener.listening.wait()
            assert await hints.wait(60)  # woken by the connection itself
            (uid,) = await submitted(db, new_job())
            publisher.hint()
            assert await hints.wait(60)
            assert [event.job_uid for event in (await entries.read(db, 0, 10)).events] == [uid]
        for task in running:
            task.cancel()


async def test_a_publisher_whose_turn_does_not_come_waits_longer_each_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is frozen before its commit holds the lock for long."""
    answers, waits = iter([*[None] * 7, 3]), list[float]()

    async def publish(_db: Database, _limit: int) -> int | None:
        return next(answers)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(entries, "publish", publish)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    await Publisher(db, Notifier(db)).publish_all()
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25]
