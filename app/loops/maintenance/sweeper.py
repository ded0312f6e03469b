"""Deletes expired rows: answers to idempotency keys, feed entries, runs of the autoscaler."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import structlog

from app.base.cancellation import rounds
from app.base.clock import Clock
from app.db.feed import entries
from app.db.jobs import autoscaler_runs
from app.db.objects import idempotency
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable

log = structlog.get_logger(__name__)

# Deleting a batch takes about ten milliseconds, so its locks do not delay requests.
BATCH = 2_000
IDEMPOTENCY_KEPT = timedelta(hours=24)
FEED_KEPT = timedelta(hours=24)
FEED_ROWS_KEPT = 10_000  # of any age, so that a client that reconnects after a quiet night can continue
RUNS_KEPT = 500  # of the autoscaler; runs that changed something are kept for RUNS_KEPT_FOR
RUNS_KEPT_FOR = timedelta(days=7)

Forget = Callable[[datetime], Awaitable[int]]


class Sweeper:
    """Deletes expired rows in batches until none is left.

    The tables take turns, and each round is followed by a pause of the same length. The sweeper therefore uses at most
    half of one connection's time, and still deletes much faster than requests can write.
    """

    def __init__(self, db: Database, clock: Clock, *, batch: int = BATCH) -> None:
        self._db = db
        self._clock = clock
        self._batch = batch

    async def run(self, every: float) -> None:
        """Delete expired rows until cancelled, with `every` seconds between two runs."""
        for _ in rounds():
            try:
                await self.sweep()
            except DatabaseUnavailable as error:
                log.warning("sweeper.database_unavailable", error=str(error))
            await asyncio.sleep(every)

    async def sweep(self) -> None:
        """Delete all expired rows."""
        # Not fenced by the lease: rows are deleted by their age alone, so two sweepers do no harm.
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
        return await entries.forget(self._db, before=now - FEED_KEPT, keep=FEED_ROWS_KEPT, limit=self._batch)

    async def _runs(self, now: datetime) -> int:
        return await autoscaler_runs.forget(self._db, before=now - RUNS_KEPT_FOR, keep=RUNS_KEPT, limit=self._batch)
