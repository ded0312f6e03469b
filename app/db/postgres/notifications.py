"""Notifications between processes. They carry no data and may be lost, so every subscriber also polls.

    hint ─▶ Notifier (one NOTIFY for many hints) ─▶ Postgres ─▶ Listener (one connection) ─▶ every subscription

All commits with a NOTIFY queue for one lock. So NOTIFY is never part of a transaction that writes, and the notifier
sends at most one in each interval.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from app.base.cancellation import rounds
from app.db.postgres.engine import Database, driver_url, session_settings
from app.db.postgres.errors import DatabaseUnavailable, TranslatedErrors
from app.db.postgres.timeouts import DatabaseTimeouts

FEED = "feed"  # the publisher has numbered feed entries
# A client has changed the intent of a job, or that of a SampleSet or SampleJob. The first channel once served both. Its
# name stays, because processes of two versions run during an upgrade.
JOB_INTENT = "intent"
SAMPLE_INTENT = "sample_intent"
CHANNELS = (FEED, JOB_INTENT, SAMPLE_INTENT)

# Channels belong to the database, in which other programs may send notifications too.
_PREFIX = "jobgate_"
# Seconds between two statements that detect a server which vanished without closing the connection.
_PING_SECONDS = 30.0
_NOTIFY = "SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS channel"


class Notifier:
    """Collects hints and sends them in `run`. `hint` never waits."""

    def __init__(self, db: Database, *, interval: float = 0.02) -> None:
        self._db = db
        self._interval = interval
        self._channels: set[str] = set()
        self._hinted = asyncio.Event()

    def hint(self, channel: str) -> None:
        self._channels.add(channel)
        self._hinted.set()

    async def run(self) -> None:
        for _ in rounds():
            await self._hinted.wait()
            self._hinted.clear()
            channels = [_PREFIX + channel for channel in self._channels]
            self._channels.clear()
            try:
                async with self._db.read() as connection:
                    await connection.execute(_NOTIFY, channels)
            except DatabaseUnavailable:
                pass  # subscribers poll, so a lost hint costs them one interval
            # The hints of this time share the next NOTIFY.
            await asyncio.sleep(self._interval)


class Subscription:
    """The hints of one channel. A hint between two waits ends the next wait."""

    def __init__(self) -> None:
        self._hinted = asyncio.Event()

    def wake(self) -> None:
        self._hinted.set()

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109  the end of the time is a result
        """Wait for a hint. Return False after `timeout` seconds. The caller polls in both cases."""
        try:
            async with asyncio.timeout(timeout):
                await self._hinted.wait()
        except TimeoutError:
            return False
        self._hinted.clear()
        return True


class Listener:
    """The listening connection of the process. After a reconnect it wakes all subscribers: hints may have been lost."""

    def __init__(self, url: str, timeouts: DatabaseTimeouts, *, reconnect: float = 1.0) -> None:
        self._url = url
        self._timeouts = timeouts
        self._reconnect = reconnect
        self._subscriptions: dict[str, set[Subscription]] = {channel: set() for channel in CHANNELS}
        self.listening = asyncio.Event()

    @contextmanager
    def subscribe(self, channel: str) -> Iterator[Subscription]:
        subscription = Subscription()
        self._subscriptions[channel].add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions[channel].discard(subscription)

    async def run(self) -> None:
        for _ in rounds():
            try:
                await self._listen()
            except DatabaseUnavailable:
                pass  # subscribers poll until it is back
            finally:
                self.listening.clear()
            await asyncio.sleep(self._reconnect)

    async def _listen(self) -> None:
        """Receive notifications until the connection ends."""
        with TranslatedErrors():
            connection: Any = await asyncpg.connect(
                driver_url(self._url),
                timeout=self._timeouts.connect,
                command_timeout=self._timeouts.statement,
                server_settings=session_settings(self._timeouts, "jobgate listener"),
            )
            try:
                await self._attend(connection)
            finally:
                # Not `close`, which would wait for the answer of a server that may be frozen.
                connection.terminate()

    async def _attend(self, connection: Any) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        for channel in CHANNELS:
            await connection.add_listener(_PREFIX + channel, self._receive)
        # Only now: hints from before the LISTEN were lost.
        self._wake_all()
        self.listening.set()
        while not ended.is_set():
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    await ended.wait()
            except TimeoutError:
                await connection.execute("SELECT 1")

    def _receive(self, _connection: Any, _pid: int, channel: str, _payload: str) -> None:
        for subscription in self._subscriptions[channel.removeprefix(_PREFIX)]:
            subscription.wake()

    def _wake_all(self) -> None:
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.wake()
