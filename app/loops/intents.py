"""Queues the jobs whose intent no decision has observed: new jobs, edits, cancels, and removals."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from app.cancellation import rounds
from app.db.errors import DatabaseUnavailable
from app.db.jobs import controller
from app.db.jobs.controller import LiveJob
from app.db.notifications import JOB_INTENT
from app.loops.context import ControllerContext
from app.loops.workqueue import WorkQueue

# Jobs in one query, the longest waiting first. The queue is fair only between the namespaces that it knows, so this is
# more than the backlog of a namespace that submits fast.
MOST: Final = 10_000
FEW: Final = 64  # jobs that are read again at every hint
# A query returns the whole backlog, so a pause that is so many times longer follows.
REST: Final = 19.0


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
                    await asyncio.sleep(await self._read())
                except DatabaseUnavailable:
                    await asyncio.sleep(self._poll_every)
                await hints.wait(self._poll_every)

    async def _read(self) -> float:
        """Queue the jobs of one query. Returns the seconds until the next one may begin."""
        began = self._clock.monotonic()
        found = await controller.pending_intents(self._db, MOST, self._served)
        in_work = {job.uid for job in found if self._queue.is_in_work(str(job.uid))}
        self._enqueue(unread(found, self._known, in_work))
        self._known = {job.uid: job.intent_at for job in found}
        return rest(len(found), self._clock.monotonic() - began)


def unread(found: Sequence[LiveJob], known: Mapping[UUID, datetime | None], in_work: Collection[UUID]) -> list[LiveJob]:
    """Return the jobs to queue: all but those in work whose intent the query before has returned.

    Such a job was queued then, so that it was loaded after this intent was stored. To queue it again would reconcile it
    once more.
    """
    return [job for job in found if job.uid not in in_work or known.get(job.uid) != job.intent_at]


def rest(jobs: int, seconds: float) -> float:
    """Return the pause in seconds after a query that returned this number of jobs and took this time."""
    return REST * seconds if jobs > FEW else 0.0
