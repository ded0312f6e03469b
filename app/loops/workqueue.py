"""A queue of keys to be reconciled, after client-go's work queue.

A key that is added several times waits once, and only one worker has it at a time. A key that is added while a worker
has it comes again when that worker is done. Groups take turns, so that a namespace with ten thousand jobs does not
delay a namespace with a single job.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable

from app.cancellation import rounds
from app.clock import Clock
from app.domain.backoff import ExponentialBackoff

RETRY_BACKOFF = ExponentialBackoff(first=0.25, longest=60.0)  # seconds between tries of a key that fails


class WorkQueue:
    """Keys in groups. Delayed keys become ready only while `run` runs."""

    def __init__(
        self,
        clock: Clock,
        *,
        group_of: Callable[[str], str] = lambda _key: "",
        backoff: ExponentialBackoff = RETRY_BACKOFF,
    ) -> None:
        self._clock = clock
        self._group_of = group_of
        self._backoff = backoff
        self._ready: OrderedDict[str, deque[str]] = OrderedDict()
        self._queued: set[str] = set()
        self._processing: set[str] = set()
        self._again: set[str] = set()
        # `_due` has the time that counts for each key. Outdated entries of a key remain in `_heap` until their time.
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}
        self._filled = asyncio.Event()
        self._rescheduled = asyncio.Event()

    def __len__(self) -> int:
        """Return how many keys wait for a worker."""
        return len(self._queued)

    def __contains__(self, key: object) -> bool:
        """Return whether the key waits for a worker."""
        return key in self._queued

    def add(self, key: str) -> None:
        """Make the key ready now."""
        if key in self._processing:
            # Not queued, or a second worker would get the key at the same time.
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
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
        keys = [self._take() for _ in range(min(limit, len(self._queued)))]
        self._processing.update(keys)
        return keys

    def _take(self) -> str:
        """Take the oldest key of the first group in turn, which then becomes the last one."""
        group, keys = next(iter(self._ready.items()))
        key = keys.popleft()
        if keys:
            self._ready.move_to_end(group)
        else:
            del self._ready[group]
        self._queued.discard(key)
        return key

    def done(self, key: str) -> None:
        """End the work on the key. If it was added meanwhile, it is ready again."""
        self._processing.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    async def run(self) -> None:
        """Make delayed keys ready when they are due, until cancelled."""
        for _ in rounds():
            wait = self.bring_due()
            # No other task runs since the heap was read, so no earlier time is missed.
            self._rescheduled.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._rescheduled.wait()
            except TimeoutError:
                continue

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
