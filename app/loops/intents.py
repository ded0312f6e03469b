"""Queues the jobs whose intent no decision has observed: new jobs, edits, cancels, and removals."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from app.base.cancellation import rounds
from app.db.jobs import controller
from app.db.jobs.controller import LiveJob
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.notifications import JOB_INTENT
from app.loops.context import ControllerContext
from app.loops.workqueue import WorkQueue

# Jobs in one query, the longest waiting first. The queue can let only those namespaces take turns whose jobs are among
# them.
MOST_JOBS: Final = 10_000
# A query returns all of them again, so after more jobs than this, queries use at most a twentieth of the time.
FEW_JOBS: Final = 64
PAUSE_FACTOR: Final = 19.0


class Intents:
    """Follows the hints on new intents, and polls for those whose hint was lost. `enqueue` gets the jobs to queue."""

    def __init__(
        self, context: ControllerContext, queue: WorkQueue, enqueue: Callable[[Sequence[LiveJob]], None]
    ) -> None:
        self._db = context.db
        self._listener = context.listener
        self._clock = context.clock
        self._served = context.settings.served
        self._poll_every = context.settings.poll_every
        self._queue = queue
        self._enqueue = enqueue
        self._known: Mapping[UUID, datetime | None] = {}

    async def follow(self) -> None:
        """Queue the jobs with new intents until cancelled."""
        # Subscribe before the first query, so that no hint is missed that arrives during it.
        with self._listener.subscribe(JOB_INTENT) as hints:
            for _ in rounds():
                try:
                    paused = await self.read()
                except DatabaseUnavailable:
                    paused = self._poll_every
                await asyncio.sleep(paused)
                await hints.wait(self._poll_every - paused)

    async def read(self) -> float:
        """Queue the jobs of one query. Returns the seconds until the next one may begin."""
        began = self._clock.monotonic()
        found = await controller.read_pending_intents(self._db, MOST_JOBS, self._served)
        busy = {job.uid for job in found if self._is_busy(str(job.uid))}
        self._enqueue(to_queue(found, self._known, busy))
        self._known = {job.uid: job.intent_at for job in found}
        return pause(len(found), self._clock.monotonic() - began, longest=self._poll_every)

    def _is_busy(self, key: str) -> bool:
        return self._queue.is_in_work(key) or self._queue.failures(key) > 0


def to_queue(found: Sequence[LiveJob], known: Mapping[UUID, datetime | None], busy: Collection[UUID]) -> list[LiveJob]:
    """Return the found jobs except busy ones whose intent the query before has returned.

    Such a job was queued then, so that it was loaded after this intent was stored, or is loaded again after its
    back-off. To queue it now would reconcile it once more, or too early.
    """
    return [job for job in found if job.uid not in busy or known.get(job.uid) != job.intent_at]


def pause(jobs: int, seconds: float, *, longest: float) -> float:
    """Return the pause in seconds after a query that returned this number of jobs and took this time."""
    return min(PAUSE_FACTOR * seconds, longest) if jobs > FEW_JOBS else 0.0
