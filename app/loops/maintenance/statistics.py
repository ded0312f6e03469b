"""Counts jobs, feed entries and storage of the installation regularly, and exposes the last numbers as metrics."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from app.base.cancellation import TaskGroup, rounds
from app.base.clock import Clock
from app.base.instruments import ComputedMetric, Values, ValueSource, expose
from app.db.installation import statistics
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.usage import reads as usage_reads
from app.domain.usage.holds import CPU
from app.loops import metrics

log = structlog.get_logger(__name__)

STORAGE_SECONDS: Final = 600.0  # sizes and ages of tables change within hours
# A count of twenty thousand live jobs takes 40 ms. With this factor, counts use at most a hundredth of a connection.
REST_FACTOR: Final = 100.0


class Statistics:
    """Exposes the jobs, the feed and the storage of the installation while it runs: in one process at a time."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._counts: statistics.Counts | None = None
        self._storage: statistics.Storage | None = None
        self._usage: Mapping[tuple[str, str, str], int] = {}

    async def run(self, every: float) -> None:
        """Count every `every` seconds until cancelled, less often if a count takes long."""
        with expose(self._gauges()):
            async with TaskGroup() as group:
                group.create_task(self._repeat(self._count, every))
                group.create_task(self._repeat(self._measure, STORAGE_SECONDS))

    def _gauges(self) -> Mapping[ComputedMetric, ValueSource]:
        return {
            metrics.JOBS: self._jobs,
            metrics.USAGE_HELD: self._held_resources,
            metrics.JOBS_WITHOUT_ROOM: self._jobs_without_room,
            metrics.FEED_POSITION: lambda: {(): self._counts.feed_position} if self._counts else {},
            metrics.FEED_UNNUMBERED: lambda: {(): self._counts.unnumbered} if self._counts else {},
            metrics.DATABASE_SIZE: lambda: {(): self._storage.bytes} if self._storage else {},
            metrics.OLDEST_ROW: self._ages,
        }

    def _jobs(self) -> Values:
        jobs: Counter[tuple[str, ...]] = Counter()
        # Namespaces with many jobs first, so that these are among the labels.
        for (namespace, kind, phase), count in Counter(self._counts.jobs if self._counts else {}).most_common():
            jobs[metrics.NAMESPACES.label(namespace), kind, phase] += count
        return jobs

    def _jobs_without_room(self) -> Values:
        jobs: Counter[tuple[str, ...]] = Counter()
        for namespace, count in Counter(self._counts.without_room if self._counts else {}).most_common():
            jobs[(metrics.NAMESPACES.label(namespace),)] += count
        return jobs

    def _held_resources(self) -> Values:
        held: defaultdict[tuple[str, ...], float] = defaultdict(float)
        # The namespaces that hold most first, so that these are among the labels.
        for (namespace, resource, use), amount in Counter(self._usage).most_common():
            labels = metrics.NAMESPACES.label(namespace), metrics.RESOURCES.label(resource), use
            held[labels] += amount / 1000 if resource == CPU else amount
        return held

    def _ages(self) -> Values:
        now, oldest = self._clock.now(), self._storage.oldest if self._storage else {}
        return {(table,): (now - time).total_seconds() for table, time in oldest.items()}

    async def _repeat(self, action: Callable[[], Awaitable[None]], every: float) -> None:
        for _ in rounds():
            began, rest = self._clock.monotonic(), every
            try:
                await action()
                rest = max(every, REST_FACTOR * (self._clock.monotonic() - began))
            except DatabaseUnavailable as error:
                log.warning("statistics.database_unavailable", error=str(error))
            await asyncio.sleep(rest)

    async def _count(self) -> None:
        self._counts = await statistics.counts(self._db)
        self._usage = await usage_reads.read_held(self._db)

    async def _measure(self) -> None:
        self._storage = await statistics.storage(self._db)
