"""Hints between processes: "look now". They carry nothing and may be lost; whoever waits also looks at intervals.

    hint ─▶ Notifier (one NOTIFY for many hints) ─▶ Postgres ─▶ Listener (one connection) ─▶ every subscription

NOTIFY takes a lock that all commits with one queue for, so it is never part of a transaction that writes, and at most
one is sent an interval.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from app.cancellation import rounds
from app.db.engine import Database, DatabaseTimeouts, driver_url, session_settings
from app.db.errors import DatabaseUnavailable, translated

FEED = "feed"  # the feed has new numbers
INTENT = "intent"  # somebody wants something of a job
CHANNELS = (FEED, INTENT)

_PREFIX = "jobgate_"
_NOTIFY = "SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS channel"


class Notifier:
    """`run` sends; `hint` only remembers, and never waits."""

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
                pass  # a hint that is lost costs its readers one interval
            await asyncio.sleep(self._interval)


class Subscription:
    """One waiter's view of a channel: hints that come between two waits are not missed."""

    def __init__(self) -> None:
        self._hinted = asyncio.Event()

    def wake(self) -> None:
        self._hinted.set()

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109  the usual way of waiting here ends by itself
        """True when hinted, False when the time is over. Look in both cases."""
        try:
            async with asyncio.timeout(timeout):
                await self._hinted.wait()
        except TimeoutError:
            return False
        self._hinted.clear()
        return True


class Listener:
    """The process's one connection that listens. Reconnected, it wakes everybody: nobody knows what was missed."""

    def __init__(
        self,
        url: str,
        *,
        timeouts: DatabaseTimeouts | None = None,
        ping: float = 30.0,
        reconnect: float = 1.0,
    ) -> None:
        self._url = url
        self._timeouts = timeouts or DatabaseTimeouts()
        self._ping = ping
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
                pass  # waiters go on by polling
            finally:
                self.listening.clear()
            await asyncio.sleep(self._reconnect)

    async def _listen(self) -> None:
        """Until the connection ends."""
        with translated():
            connection: Any = await asyncpg.connect(
                driver_url(self._url),
                timeout=self._timeouts.connect,
                command_timeout=self._timeouts.statement,
                server_settings=session_settings(self._timeouts, "jobgate listener"),
            )
            try:
                await self._attend(connection)
            finally:
                connection.terminate()

    async def _attend(self, connection: Any) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        for channel in CHANNELS:
            await connection.add_listener(_PREFIX + channel, self._received)
        self._wake_all()
        self.listening.set()
        while not ended.is_set():
            try:
                async with asyncio.timeout(self._ping):
                    await ended.wait()
            except TimeoutError:
                await connection.execute("SELECT 1")  # a peer that died without a word is found out only by asking

    def _received(self, _connection: Any, _pid: int, channel: str, _payload: str) -> None:
        for subscription in self._subscriptions[channel.removeprefix(_PREFIX)]:
            subscription.wake()

    def _wake_all(self) -> None:
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.wake()
