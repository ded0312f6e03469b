"""A queue of keys to be reconciled, after client-go's work queue.

A key that is added several times waits once, and only one worker has it at a time. A key that is added while a worker
has it comes again when that worker is done. Groups take turns, so that a namespace with ten thousand jobs does not
delay a namespace with a single job.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import rounds
from app.base.clock import Clock
from app.base.instruments import ComputedMetric, ValueSource, expose
from app.loops import metrics

RETRY_BACKOFF = ExponentialBackoff(first=0.25, longest=60.0)  # seconds between tries of a key that fails


class WorkQueue:
    """Keys in groups. Delayed keys become ready only while `run` runs. `name` is that of the queue in metrics."""

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "jobs",
        group_of: Callable[[str], str] = lambda _key: "",
        backoff: ExponentialBackoff = RETRY_BACKOFF,
    ) -> None:
        self._clock = clock
        self._group_of = group_of
        self._backoff = backoff
        self._ready: OrderedDict[str, deque[str]] = OrderedDict()
        # When each key was added, or when its worker got it.
        self._queued: dict[str, float] = {}
        self._processing: dict[str, float] = {}
        self._again: dict[str, float] = {}
        # `_due` has the time that counts for each key. Outdated entries of a key remain in `_heap` until their time.
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}
        self._filled = asyncio.Event()
        self._rescheduled = asyncio.Event()
        self._name = name
        self._adds = metrics.QUEUE_ADDS.labels(name)
        self._retries = metrics.QUEUE_RETRIES.labels(name)
        self._waits = metrics.QUEUE_WAIT.labels(name)
        self._works = metrics.QUEUE_WORK.labels(name)

    def __len__(self) -> int:
        """Return how many keys wait for a worker."""
        return len(self._queued)

    def __contains__(self, key: object) -> bool:
        """Return whether the key waits for a worker."""
        return key in self._queued

    def is_in_work(self, key: str) -> bool:
        """Return whether a worker has the key."""
        return key in self._processing

    @property
    def longest_wait(self) -> float | None:
        """The longest time in seconds for which a ready key has waited for a worker; None if there is none."""
        since = min(self._queued.values(), default=None)
        return None if since is None else self._clock.monotonic() - since

    def add(self, key: str) -> None:
        """Make the key ready now."""
        if key in self._queued or key in self._again:
            return
        self._adds.inc()
        now = self._clock.monotonic()
        if key in self._processing:
            # Not queued, or a second worker would get the key at the same time.
            self._again[key] = now
        else:
            self._enqueue(key, now)

    def _enqueue(self, key: str, added_at: float) -> None:
        self._queued[key] = added_at
        self._ready.setdefault(self._group_of(key), deque()).append(key)
        self._filled.set()

    def add_after(self, key: str, delay: float) -> None:
        """Make the key ready after this number of seconds. The earliest of several delays of one key counts."""
        if delay <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            if self._heap[0] == (due, key):
                # `run` sleeps until a later time than this one.
                self._rescheduled.set()

    def add_rate_limited(self, key: str) -> None:
        """Count a failure of the key, and make it ready after its back-off."""
        self._retries.inc()
        self._failures[key] = self.failures(key) + 1
        self.add_after(key, self._backoff.delay(self._failures[key]))

    def forget(self, key: str) -> None:
        """Forget the failures of the key, after a success."""
        self._failures.pop(key, None)

    def failures(self, key: str) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> str:
        """Wait for a key. No other worker gets it until `done`."""
        return (await self.get_batch(1))[0]

    async def get_batch(self, limit: int) -> list[str]:
        """Wait for at least one key, and return up to `limit` keys of as many groups as possible."""
        # A loop, because another worker may take the keys before this one runs.
        while not self._queued:
            self._filled.clear()
            await self._filled.wait()
        now = self._clock.monotonic()
        return [self._take(now) for _ in range(min(limit, len(self._queued)))]

    def _take(self, now: float) -> str:
        """Take the oldest key of the first group in turn, which then becomes the last one."""
        group, keys = next(iter(self._ready.items()))
        key = keys.popleft()
        if keys:
            self._ready.move_to_end(group)
        else:
            del self._ready[group]
        self._waits.observe(now - self._queued.pop(key))
        self._processing[key] = now
        return key

    def done(self, key: str) -> None:
        """End the work on the key. If it was added meanwhile, it is ready again."""
        began = self._processing.pop(key, None)
        if began is not None:
            self._works.observe(self._clock.monotonic() - began)
        added_at = self._again.pop(key, None)
        if added_at is not None:
            self._enqueue(key, added_at)

    async def run(self) -> None:
        """Make delayed keys ready when they are due, until cancelled."""
        gauges: dict[ComputedMetric, ValueSource] = {
            metrics.QUEUE_DEPTH: lambda: {(self._name,): len(self)},
            metrics.QUEUE_UNFINISHED: lambda: {(self._name,): sum(self._times_in_work())},
            metrics.QUEUE_LONGEST: lambda: {(self._name,): max(self._times_in_work(), default=0.0)},
        }
        with expose(gauges):
            for _ in rounds():
                wait = self.bring_due()
                # No other task runs since the heap was read, so no earlier time is missed.
                self._rescheduled.clear()
                try:
                    async with asyncio.timeout(wait):
                        await self._rescheduled.wait()
                except TimeoutError:
                    continue

    def _times_in_work(self) -> list[float]:
        """Return for how many seconds each key in work has been with its worker."""
        now = self._clock.monotonic()
        return [now - began for began in self._processing.values()]

    def bring_due(self) -> float | None:
        """Make due keys ready. Returns the seconds until the next one is due."""
        now = self._clock.monotonic()
        while self._heap:
            due, key = self._heap[0]
            if self._due.get(key) == due:
                if due > now:
                    return due - now
                del self._due[key]
                self.add(key)
            heapq.heappop(self._heap)
        return None
