"""Reads the Events of pods that have been pending for long, to find out why.

The reader runs concurrently with the reconciler: a reconcile that waited for Events would delay newer states of its
job. The pods of a namespace share a read. The Events of one pod are read at most once in AGAIN seconds.

While many pods start on a busy cluster, all of them are pending for long, at different times. The reads then must not
take the time of the API server from the start of the pods, so a namespace rests after each read.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

from app.base.caches import BoundedCache
from app.base.cancellation import rounds
from app.base.clock import Clock
from app.domain.plan import JobIdentity
from app.domain.reconcile.actions import ReadEvents
from app.domain.status.pods.diagnosis import diagnose_events
from app.loops.jobs.evidence.event_lists import EventLists, PodEvents
from app.loops.jobs.expectations import Expectations

READS_PER_SECOND = 20.0
AGAIN = 15.0  # seconds; schedulers and kubelets repeat an Event about this often
# After a read, its namespace waits for this many times its duration, but at most for AGAIN seconds.
REST = 9.0
REMEMBERED = 10_000  # pods; beyond this number some may be read again too early


class EventReader:
    """Reads Events in turn. `requeue` is called with a job's uid and the seconds after which to reconcile it."""

    def __init__(self, event_lists: EventLists, clock: Clock, requeue: Callable[[str, float], None]) -> None:
        self._event_lists = event_lists
        self._clock = clock
        self._requeue = requeue
        # By namespace and by uid of the pod. The namespaces are in the order of the pods that have waited longest.
        self._wanted: dict[str, dict[str, tuple[JobIdentity, Expectations]]] = {}
        self._rest_until: dict[str, float] = {}
        self._read_at: BoundedCache[str, float] = BoundedCache(REMEMBERED)
        self._filled = asyncio.Event()

    def request(self, job: JobIdentity, action: ReadEvents, expectations: Expectations) -> None:
        """Request that the Events of the pod are read. If they were read a moment ago, requeue the job for later.

        The work queue keeps only the earliest time for each job, so every reconcile has to request the later one again.
        """
        read_at = self._read_at.get(action.uid)
        if read_at is not None and (wait := read_at + AGAIN - self._clock.monotonic()) > 0:
            self._requeue(job.uid, wait)
            return
        self._wanted.setdefault(job.namespace, {})[action.uid] = (job, expectations)
        self._filled.set()

    async def run(self) -> None:
        """Read the Events of the pods of one namespace after the other until cancelled."""
        for _ in rounds():
            while (namespace := self._ready_namespace()) is None:
                await self._wait_for_one()
            wanted = self._wanted.pop(namespace)
            # Before the read, so that a request that arrives during it waits like one after it.
            self._remember(wanted)
            begun = self._clock.monotonic()
            events = await self._event_lists.of(namespace, wanted) or {}
            self._rest(namespace, self._clock.monotonic() - begun)
            for uid, (job, expectations) in wanted.items():
                self._explain(uid, job, expectations, events)
            await asyncio.sleep(1 / READS_PER_SECOND)

    def _ready_namespace(self) -> str | None:
        """Return the namespace whose pod has waited longest, among those that do not rest."""
        now = self._clock.monotonic()
        return next((name for name in self._wanted if self._rest_until.get(name, now) <= now), None)

    async def _wait_for_one(self) -> None:
        """Wait until a rest ends or a request arrives. All namespaces with pods rest."""
        now = self._clock.monotonic()
        self._filled.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(min((self._rest_until[name] - now for name in self._wanted), default=None)):
                await self._filled.wait()

    def _rest(self, namespace: str, took: float) -> None:
        now = self._clock.monotonic()
        self._rest_until = {name: until for name, until in self._rest_until.items() if until > now}
        self._rest_until[namespace] = now + min(REST * took, AGAIN)

    def _remember(self, uids: Collection[str]) -> None:
        now = self._clock.monotonic()
        for uid in uids:
            self._read_at.put(uid, now)

    def _explain(self, uid: str, job: JobIdentity, expectations: Expectations, events: PodEvents) -> None:
        """Note why a pod is pending. If its Events do not say it, requeue the job to read them again later."""
        reason = diagnose_events(found) if (found := events.get(uid)) else None
        if reason is None:
            self._requeue(job.uid, AGAIN)
        elif expectations.pending_events.get(uid) != reason:
            expectations.pending_events[uid] = reason
            self._requeue(job.uid, 0.0)
