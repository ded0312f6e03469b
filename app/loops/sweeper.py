"""Deletes rows past their time: kept answers to idempotency keys, feed entries, runs of the autoscaler."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import structlog

from app.cancellation import rounds
from app.clock import Clock
from app.db import autoscaler_runs, feed, idempotency
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable

log = structlog.get_logger()

# A batch takes some ten milliseconds, so that its locks and its transaction hold up nobody.
BATCH = 2_000
IDEMPOTENCY_KEPT = timedelta(hours=24)
FEED_KEPT = timedelta(hours=24)
FEED_ROWS_KEPT = 10_000  # however old, so that a client which was away over a quiet night need not start anew
RUNS_KEPT = 500  # of the autoscaler; those that changed something for RUNS_KEPT_FOR
RUNS_KEPT_FOR = timedelta(days=7)

Forget = Callable[[datetime], Awaitable[int]]


class Sweeper:
    """Deletes in batches until nothing is left that is past its time, however much has come meanwhile.

    The tables take turns, and after each round it pauses for as long as the round took: it never takes more than half
    of one connection's time, and still deletes far faster than requests can write.
    """

    def __init__(self, db: Database, clock: Clock, *, batch: int = BATCH) -> None:
        self._db = db
        self._clock = clock
        self._batch = batch

    async def run(self, every: float) -> None:
        """Sweep every so many seconds until cancelled."""
        for _ in rounds():
            try:
                await self.sweep()
            except DatabaseUnavailable as error:
                log.warning("sweeper.database_unavailable", error=str(error))
            await asyncio.sleep(every)

    async def sweep(self) -> None:
        """Delete all that is past its time."""
        left: Sequence[Forget] = (self._keys, self._feed, self._runs)
        for _ in rounds():
            started = self._clock.monotonic()
            now = self._clock.now()
            left = [forget for forget in left if await forget(now) >= self._batch]
            if not left:
                return
            await asyncio.sleep(self._clock.monotonic() - started)

    async def _keys(self, now: datetime) -> int:
        return await idempotency.forget(self._db, now - IDEMPOTENCY_KEPT, self._batch)

    async def _feed(self, now: datetime) -> int:
        return await feed.forget(self._db, before=now - FEED_KEPT, keep=FEED_ROWS_KEPT, limit=self._batch)

    async def _runs(self, now: datetime) -> int:
        return await autoscaler_runs.forget(self._db, before=now - RUNS_KEPT_FOR, keep=RUNS_KEPT, limit=self._batch)
