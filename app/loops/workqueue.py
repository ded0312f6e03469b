"""Which keys want a look, in the manner of client-go's work queue.

A key waits once however often it is added, and is never with two workers; added while one has it, it comes again when
that one is done. Groups take turns, so that a namespace with ten thousand jobs does not keep one with a single job
waiting. Nothing here knows what a key means.
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
    """`run()` must be running for delayed keys to come."""

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
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}
        self._filled = asyncio.Event()
        self._rescheduled = asyncio.Event()

    def __len__(self) -> int:
        """How many wait for a worker now."""
        return len(self._queued)

    def add(self, key: str) -> None:
        """A look is wanted now."""
        if key in self._processing:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.setdefault(self._group_of(key), deque()).append(key)
            self._filled.set()

    def add_after(self, key: str, delay: float) -> None:
        """A look is wanted after so many seconds; of several such wishes the earliest counts."""
        if delay <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            if self._heap[0] == (due, key):
                self._rescheduled.set()

    def add_rate_limited(self, key: str) -> None:
        """A look failed: another, later each time."""
        self._failures[key] = self.failures(key) + 1
        self.add_after(key, self._backoff.delay(self._failures[key]))

    def forget(self, key: str) -> None:
        """A look succeeded: failures start anew."""
        self._failures.pop(key, None)

    def failures(self, key: str) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> str:
        """The next key, the caller's alone until `done`."""
        return (await self.get_batch(1))[0]

    async def get_batch(self, limit: int) -> list[str]:
        """Up to `limit` keys, at least one, of as many groups as there are."""
        while not self._queued:
            self._filled.clear()
            await self._filled.wait()
        keys = [self._take() for _ in range(min(limit, len(self._queued)))]
        self._processing.update(keys)
        return keys

    def _take(self) -> str:
        """The oldest key of the group whose turn it is; the group then goes to the end of the line."""
        group, keys = next(iter(self._ready.items()))
        key = keys.popleft()
        if keys:
            self._ready.move_to_end(group)
        else:
            del self._ready[group]
        self._queued.discard(key)
        return key

    def done(self, key: str) -> None:
        """The caller has finished with the key."""
        self._processing.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    async def run(self) -> None:
        """Brings delayed keys when they are due, until cancelled."""
        for _ in rounds():
            wait = self.bring_due()
            self._rescheduled.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._rescheduled.wait()
            except TimeoutError:
                continue

    def bring_due(self) -> float | None:
        """Adds the keys that are due; the seconds until the next one is."""
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
