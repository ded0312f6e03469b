"""Asks the Events of pods that have been pending for long why they are.

Beside the passes and never within one: a pass that waited for an answer would keep newer states of its job from being
written. At most READS_PER_SECOND are read, and those of one pod no sooner than AGAIN seconds after the last time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from app.cancellation import rounds
from app.clock import Clock
from app.domain.plan import JobIdentity
from app.domain.reconcile.actions import ReadEvents
from app.domain.status.diagnosis import diagnose_events
from app.k8s.api import KubeApi
from app.loops.evidence import read_events
from app.loops.expectations import Expectations

READS_PER_SECOND = 20.0
AGAIN = 15.0  # seconds; a scheduler or kubelet repeats what it has to say about this often
REMEMBERED = 10_000


class EventReader:
    """`look_again` is called with a job's uid and the seconds after which a pass over it is worth while."""

    def __init__(self, api: KubeApi, clock: Clock, look_again: Callable[[str, float], None]) -> None:
        self._api = api
        self._clock = clock
        self._look_again = look_again
        self._wanted: OrderedDict[str, tuple[JobIdentity, Expectations]] = OrderedDict()
        self._asked: OrderedDict[str, float] = OrderedDict()
        self._filled = asyncio.Event()

    def ask(self, job: JobIdentity, action: ReadEvents, expectations: Expectations) -> None:
        """Put the pod in line; one that was asked about a moment ago comes again when it may.

        Each pass wishes that anew: of a job's wishes for another look the queue keeps the earliest alone.
        """
        wait = self._asked.get(action.uid, float("-inf")) + AGAIN - self._clock.monotonic()
        if wait > 0:
            self._look_again(job.uid, wait)
            return
        self._wanted[action.uid] = (job, expectations)
        self._filled.set()

    async def run(self) -> None:
        """Read in turn until cancelled."""
        for _ in rounds():
            while not self._wanted:
                self._filled.clear()
                await self._filled.wait()
            uid, (job, expectations) = self._wanted.popitem(last=False)
            self._remember(uid)
            await self._explain(uid, job, expectations)
            await asyncio.sleep(1 / READS_PER_SECOND)

    def _remember(self, uid: str) -> None:
        self._asked[uid] = self._clock.monotonic()
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)

    async def _explain(self, uid: str, job: JobIdentity, expectations: Expectations) -> None:
        """A pod that nobody has spoken of yet is asked about again in a while."""
        events = await read_events(self._api, job, uid)
        reason = diagnose_events(events) if events else None
        if reason is None:
            self._look_again(job.uid, AGAIN)
        elif expectations.pending_events.get(uid) != reason:
            expectations.pending_events[uid] = reason
            self._look_again(job.uid, 0.0)
