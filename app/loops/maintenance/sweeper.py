"""Deletes expired rows: records of objects, feed entries, answers to idempotency keys, runs of the autoscaler."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeAlias

import structlog

from app.base.cancellation import rounds
from app.base.clock import Clock
from app.base.instruments import ComputedMetric, ValueSource, expose
from app.db import purge
from app.db.feed import entries
from app.db.jobs import autoscaler_runs
from app.db.objects import idempotency
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.purge import Deleted, Purge
from app.domain.retention import Keeping, KeptFor, Retention
from app.exports.archive import Archive
from app.loops import metrics

log = structlog.get_logger(__name__)

# Deleting a batch takes about ten milliseconds, so its locks do not delay requests.
BATCH: Final = 2_000
FEED_ROWS_KEPT: Final = 10_000  # of any age, so that a client that reconnects after a quiet night can continue
RUNS_KEPT: Final = 500  # of the autoscaler, whatever their age and whether they changed something
# Seconds between two exports of expired jobs: each makes a segment, and an import reads them one after the other.
EXPORT_EVERY: Final = 3600.0
# The pause after each round, as a multiple of its duration.
REST: Final = 3.0

Step: TypeAlias = Callable[[], Awaitable[Deleted]]
"""Deletes the next expired rows of one sort, in one short transaction."""


class Sweeper:
    """Deletes expired rows in batches until none is left.

    The sorts of rows take turns, and each round is followed by a pause of several times its length. The sweeper
    therefore uses a quarter of one connection's time at most, and still deletes much faster than requests can write.

    With an `archive`, jobs are copied to it before they are deleted, those of an hour at once. While that fails, no
    job is deleted, and `note` gets the reason.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        keeping: Keeping,
        *,
        archive: Archive | None = None,
        note: Callable[[str], None] = lambda _: None,
        batch: int = BATCH,
    ) -> None:
        self._db = db
        self._clock = clock
        self._keeping = keeping
        self._archive = archive
        self._note = note
        self._batch = batch
        self._fault = ""  # why jobs cannot be exported
        self._export_at = clock.monotonic()
        self._done_at = clock.monotonic()

    async def run(self, every: float) -> None:
        """Delete expired rows until cancelled, with `every` seconds between two runs."""
        gauges: dict[ComputedMetric, ValueSource] = {
            metrics.SWEEP_LAG: lambda: {(): self._clock.monotonic() - self._done_at}
        }
        if self._archive is not None:
            gauges[metrics.EXPORT_FAILING] = lambda: {(): int(bool(self._fault))}
        with expose(gauges):
            for _ in rounds():
                try:
                    await self.sweep()
                    if not self._fault:
                        self._done_at = self._clock.monotonic()
                except DatabaseUnavailable as error:
                    log.warning("sweeper.database_unavailable", error=str(error))
                await asyncio.sleep(every)

    async def sweep(self) -> None:
        """Delete all expired rows."""
        # Not fenced by the lease: rows are deleted by their age alone, and neither of two sweepers replaces what the
        # other one has exported, so they do no harm.
        keeping = self._keeping
        kept: list[tuple[str, KeptFor, Callable[[datetime], Awaitable[int]]]] = [
            ("idempotency_keys", keeping.idempotency_keys, self._forget_keys),
            ("job_events", keeping.feed, self._forget_events),
            ("autoscaler_runs", keeping.autoscaler_runs, self._forget_runs),
            ("purged", keeping.purged, self._forget_purged),
        ]
        steps: list[Step] = [
            partial(self._forget, table, kept_for, forget) for table, kept_for, forget in kept if kept_for is not None
        ]
        if self._archive is None or self._clock.monotonic() >= self._export_at:
            steps.append(partial(self._purge_jobs, await self._purge(purge.JOBS, keeping.jobs, self._archive)))
        steps.append((await self._purge(purge.IMPORTED_JOBS, keeping.jobs)).step)
        steps.append((await self._purge(purge.SAMPLES, keeping.samples)).step)
        await take_turns(steps, self._clock)

    async def _purge(self, purgeable: purge.Purgeable, retention: Retention, archive: Archive | None = None) -> Purge:
        """Return the deletion of the objects that have expired."""
        ended_before = retention.ends(await purge.namespaces(self._db, purgeable), self._clock.now())
        copy = None if archive is None else archive.copy
        return Purge(db=self._db, of=purgeable, ended_before=ended_before, copy=copy)

    async def _purge_jobs(self, jobs: Purge) -> Deleted:
        try:
            deleted = await jobs.step()
        except OSError as error:  # of the folder, or of the disk below it
            log.warning("sweeper.export_failed", error=str(error))
            self._report(f"no record of a job is deleted, because jobs cannot be exported before: {error}")
            return Deleted(rows={}, is_last=True)
        self._report("")
        if deleted.is_last:
            self._export_at = self._clock.monotonic() + EXPORT_EVERY
        return deleted

    def _report(self, fault: str) -> None:
        if fault != self._fault:
            self._fault = fault
            self._note(fault)

    async def _forget(self, table: str, kept_for: timedelta, forget: Callable[[datetime], Awaitable[int]]) -> Deleted:
        rows = await forget(self._clock.now() - kept_for)
        return Deleted(rows={table: rows}, is_last=rows < self._batch)

    async def _forget_keys(self, before: datetime) -> int:
        return await idempotency.forget(self._db, before, self._batch)

    async def _forget_events(self, before: datetime) -> int:
        return await entries.forget(self._db, before=before, keep=FEED_ROWS_KEPT, limit=self._batch)

    async def _forget_runs(self, before: datetime) -> int:
        return await autoscaler_runs.forget(self._db, before=before, keep=RUNS_KEPT, limit=self._batch)

    async def _forget_purged(self, before: datetime) -> int:
        return await purge.forget(self._db, before, self._batch)


async def take_turns(steps: Sequence[Step], clock: Clock) -> None:
    """Repeat the steps until each has deleted its last rows, and pause after each round."""
    for _ in rounds():
        started = clock.monotonic()
        left = []
        for step in steps:
            deleted = await step()
            for table, rows in deleted.rows.items():
                metrics.SWEPT_ROWS.labels(table).inc(rows)
            if not deleted.is_last:
                left.append(step)
        steps = left
        if not steps:
            return
        await asyncio.sleep(REST * (clock.monotonic() - started))
