"""Slices of the event loop's time. Callers take turns, so that one with many requests does not delay the others.

    work of a caller ─▶ nobody waits ─▶ it runs at once
                     └▶ it waits ─▶ everything else that was ready has run ─▶ its turn comes ─▶ it runs

An event loop runs everything that is ready in one iteration. If the iteration is long, everything else waits for its
end, at each of its own steps: a poll has about ten. So slices that wait begin after an iteration in which nothing else
was ready, and only one of them while slices are long. A request that has begun therefore waits for a slice of another
caller when it begins and when it waits for the database, and not at each of its steps.
"""

import asyncio
import time
from collections.abc import Hashable
from typing import Final

from app.fairness.fair_queue import FairQueue

LONG_ITERATION: Final = 0.0005
"""Seconds. A request waits for the rest of an iteration several times."""
# Seconds of an iteration in which nothing else was ready. It takes about 5 microseconds, a step of a request above 20.
_QUIET_ITERATION: Final = 0.00002
# Iterations after which a slice begins although the loop is never quiet, because other work has no slices.
_MOST_BUSY: Final = 16
# Slices that begin in one iteration while iterations are short.
_MOST: Final = 64
# Every waiting slice belongs to an open connection or to a reader of a log, and the limits of both are lower.
_MOST_WAITING: Final = 1_000_000


class Slices:
    """The slices of one event loop."""

    def __init__(self) -> None:
        self._waiting: FairQueue[Hashable, asyncio.Future[None]] = FairQueue(_MOST_WAITING)
        self._allowed = self._left = _MOST  # slices that may begin in this iteration: in all, and still
        self._busy = 0  # iterations since the last one in which slices ran
        self._is_counting = False  # the end of this iteration is scheduled
        self._began = 0.0

    async def next(self, key: Hashable) -> None:
        """Return when a slice of this caller may begin. It should take less than a millisecond, or take another."""
        if self._left and not self._waiting:
            self._begin_one()
            return
        own = asyncio.get_running_loop().create_future()
        self._waiting.push(key, own)
        self._count()
        try:
            await own
        except asyncio.CancelledError:
            self._waiting.remove(key, own)
            raise

    def _begin_one(self) -> None:
        self._left -= 1
        self._count()

    def _count(self) -> None:
        if not self._is_counting:
            self._is_counting, self._began = True, time.perf_counter()
            asyncio.get_running_loop().call_soon(self._end_iteration)

    def _end_iteration(self) -> None:
        """Adapt the number of slices to the duration of the iteration, and begin those of the next one."""
        self._is_counting = False
        seconds = time.perf_counter() - self._began
        if not self._busy:  # slices ran in it
            self._allowed = 1 if seconds > LONG_ITERATION else min(2 * self._allowed, _MOST)
        if self._waiting and self._is_busy(seconds):
            self._busy += 1
            self._left = 0
            self._count()
            return
        self._busy, self._left = 0, self._allowed
        while self._left and self._waiting:
            following = self._waiting.pop()
            if not following.done():  # else it was cancelled a moment ago
                following.set_result(None)
                self._begin_one()
        if self._waiting:
            self._count()

    def _is_busy(self, seconds: float) -> bool:
        """Return whether other work was ready in the iteration, which may continue in the next one."""
        return seconds > _QUIET_ITERATION and self._busy < _MOST_BUSY
