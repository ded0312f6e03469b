"""Hints arrive, several as one notification, and a listener reconnects."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.db.postgres.engine import Database
from app.db.postgres.notifications import FEED, JOB_INTENT, Listener, Notifier
from app.db.postgres.timeouts import DatabaseTimeouts

KILL_LISTENER = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'jobgate listener'
"""


@asynccontextmanager
async def at_work(*parts: Listener | Notifier) -> AsyncIterator[None]:
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(part.run()) for part in parts]
        for part in parts:
            if isinstance(part, Listener):
                await part.listening.wait()
        yield
        for task in running:
            task.cancel()


async def test_a_hint_wakes_the_subscribers_of_its_channel_only(db: Database, database_url: str) -> None:
    listener, notifier = Listener(database_url, DatabaseTimeouts()), Notifier(db)
    async with at_work(listener, notifier):
        with listener.subscribe(FEED) as one, listener.subscribe(FEED) as two, listener.subscribe(JOB_INTENT) as other:
            notifier.hint(FEED)
            assert await one.wait(60)
            assert await two.wait(60)
            assert not await other.wait(0.05)
            assert not await one.wait(0.05), "a hint is consumed"


async def test_many_hints_are_few_notifications(db: Database, database_url: str) -> None:
    listener, notifier = Listener(database_url, DatabaseTimeouts()), Notifier(db, interval=0.2)
    async with at_work(listener, notifier):
        with listener.subscribe(FEED) as hints:
            began = time.monotonic()
            for _ in range(100):
                notifier.hint(FEED)
                await asyncio.sleep(0.001)
            took = time.monotonic() - began
            woken = 0
            assert await hints.wait(60)
            while await hints.wait(0.5):
                woken += 1
    assert woken <= 2 + took / 0.2, "the first at once, then one an interval"


async def test_a_listener_reconnects_and_wakes_all_subscribers(db: Database, database_url: str) -> None:
    listener, notifier = Listener(database_url, DatabaseTimeouts(), reconnect=0.01), Notifier(db)
    async with at_work(listener, notifier):
        with listener.subscribe(FEED) as hints:
            async with db.read() as connection:
                assert await connection.fetchval(KILL_LISTENER) == 1
            assert await hints.wait(60), "woken, for a hint may have been missed"
            notifier.hint(FEED)
            assert await hints.wait(60)


async def test_subscribers_wake_after_their_timeout_without_a_server() -> None:
    listener = Listener("postgresql://nobody@127.0.0.1:1/none", DatabaseTimeouts(), reconnect=0.01)
    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(listener.run())
        with listener.subscribe(FEED) as hints:
            assert not await hints.wait(0.1)
        assert not listener.listening.is_set()
        running.cancel()
