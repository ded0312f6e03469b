"""Slices of the event loop's time. Callers take turns, so that one with many requests does not delay the others.

    work of a caller ─▶ nobody waits ─▶ it runs at once
                     └▶ it waits ─▶ its turn comes in one of the next iterations of the event loop ─▶ it runs

An event loop runs everything that is ready in one iteration. If the iteration is long, everything else waits for its
end, at each of its own steps. So while iterations are long, only one slice begins in each.
"""

import asyncio
from collections.abc import Hashable
from typing import Final

from app.fairness.fair_queue import FairQueue

LONG_ITERATION: Final = 0.001
"""Seconds. A request has several steps, each of which may wait for the rest of an iteration."""
# Slices that begin in one iteration while iterations are short.
_MOST: Final = 64
# Every waiting slice belongs to an open connection or to a reader of a log, and the limits of both are lower.
_MOST_WAITING: Final = 1_000_000


class Slices:
    """The slices of one event loop."""

    def __init__(self) -> None:
        self._waiting: FairQueue[Hashable, asyncio.Future[None]] = FairQueue(_MOST_WAITING)
        self._allowed = self._left = _MOST  # slices that may begin in this iteration: in all, and still
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
            loop = asyncio.get_running_loop()
            self._is_counting, self._began = True, loop.time()
            loop.call_soon(self._end_iteration)

    def _end_iteration(self) -> None:
        """Adapt the number of slices to the duration of the iteration, and begin those of the next one."""
        self._is_counting = False
        is_long = asyncio.get_running_loop().time() - self._began > LONG_ITERATION
        self._left = self._allowed = 1 if is_long else min(2 * self._allowed, _MOST)
        while self._left and self._waiting:
            following = self._waiting.pop()
            if not following.done():  # else it was cancelled a moment ago
                following.set_result(None)
                self._begin_one()
        if self._waiting:
            self._count()
