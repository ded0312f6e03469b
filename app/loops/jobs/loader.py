"""Loads the jobs of the queue in batches of bounded memory.

The next batch loads while the reconciler decides on the present one.

    take from the queue ─▶ read the sizes ─▶ divide into batches ─▶ wait for room ─▶ load

A job can change between its load and its decision. The write of the decision compares the versions of its row, and the
queue gives a job that was added again back to the reconciler once it is done. A decision without a write can act on an
older state; the next reconcile undoes what the change forbids.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.base.clock import Clock
from app.db.jobs import controller
from app.db.jobs.controller import JobSize, StoredJob
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.access.namespaces import NamespaceSet
from app.domain.reservations.pod_limits import PodLimits
from app.loops.jobs.memory_budget import BATCH_BYTES, batches, reconcile_bytes
from app.loops.workqueue import WorkQueue

BATCH: Final = 64  # jobs that are taken from the queue at once


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedJobs:
    """Loaded jobs and their sizes. The caller removes those that it gives back to the queue before the others.

    `began` is the monotonic time at which the load began, `memory` an estimate.
    """

    jobs: dict[UUID, StoredJob]
    sizes: Mapping[UUID, JobSize]
    began: float
    memory: int


class Loader:
    """Loads batches for one caller, which releases each.

    `quiet` is called with the uid of a job that does not exist, and `pause` with jobs that could not be read.
    """

    def __init__(
        self,
        db: Database,
        served: NamespaceSet,
        limits: PodLimits,
        clock: Clock,
        queue: WorkQueue,
        *,
        quiet: Callable[[str], None],
        pause: Callable[[Sequence[str], DatabaseUnavailable], Awaitable[None]],
        limit: int = BATCH_BYTES,
    ) -> None:
        self._db = db
        self._served = served
        self._limits = limits
        self._clock = clock
        self._queue = queue
        self._quiet = quiet
        self._pause = pause
        self._limit = limit
        self._taken: deque[Mapping[UUID, JobSize]] = deque()
        self._loaded = 0  # bytes of the batches that are not released
        self._released = asyncio.Event()

    @property
    def has_full_batch(self) -> bool:
        """Whether a batch is ready that more jobs would not join if it were taken later."""
        return bool(self._taken) or len(self._queue) >= BATCH

    async def next(self) -> LoadedJobs:
        """Wait for jobs and for the memory of a batch, and load it."""
        batch = None
        while batch is None:
            if not self._taken:
                await self._take()
            if self._taken:
                batch = await self._load(self._taken.popleft())
        return batch

    def release(self, batch: LoadedJobs) -> None:
        """Make room for another batch. The caller keeps no reference to this one."""
        self._loaded -= batch.memory
        self._released.set()

    async def _take(self) -> None:
        keys = await self._queue.get_batch(BATCH)
        try:
            sizes = await controller.read_sizes(self._db, [UUID(key) for key in keys])
        except DatabaseUnavailable as error:
            await self._pause(keys, error)
            return
        # A pod can name a job that PostgreSQL does not know. The janitor deletes such a pod if it is jobgate's.
        self._end(UUID(key) for key in keys if UUID(key) not in sizes)
        found = [uid for key in keys if (uid := UUID(key)) in sizes]
        self._taken.extend({uid: sizes[uid] for uid in group} for group in batches(found, sizes, self._limit))

    async def _load(self, sizes: Mapping[UUID, JobSize]) -> LoadedJobs | None:
        memory = sum(map(reconcile_bytes, sizes.values()))
        # A batch beyond the limit, which is a single job, waits until no other is in memory.
        while self._loaded and self._loaded + memory > self._limit:
            self._released.clear()
            await self._released.wait()
        began = self._clock.monotonic()
        try:
            jobs = await controller.load(self._db, list(sizes), self._served, self._limits)
        except DatabaseUnavailable as error:
            await self._pause([str(uid) for uid in sizes], error)
            return None
        self._end(uid for uid in sizes if uid not in jobs)
        self._loaded += memory
        return LoadedJobs(jobs=jobs, sizes=sizes, began=began, memory=memory)

    def _end(self, uids: Iterable[UUID]) -> None:
        for uid in uids:
            self._quiet(str(uid))
            self._queue.done(str(uid))
