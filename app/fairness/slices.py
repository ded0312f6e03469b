"""Slices of the event loop's time. Callers take turns, so that one with many requests does not delay the others.

    work of a caller ─▶ nobody waits ─▶ it runs at once
                     └▶ it waits ─▶ everything else that was ready has run ─▶ its turn comes ─▶ it runs

An event loop runs everything that is ready in one iteration. If the iteration is long, everything else waits for its
end, at each of its own steps: a poll has about ten. So slices begin in rounds. A round is over after an iteration in
which nothing else was ready, and as many slices begin in it as are short enough together, at least one. A request that
has begun therefore waits for slices of another caller when it begins and when it waits for the database, and not at
each of its steps.
"""

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Final

from app.fairness.fair_queue import FairQueue

LONG_ROUND: Final = 0.0005
"""Seconds that the slices of a round should take together. A request waits for the rest of a round several times."""
# Seconds of an iteration in which nothing else was ready. It takes about 5 microseconds, a step of a request above 20.
_QUIET_ITERATION: Final = 0.00002
# Seconds after which a round is over although the loop is not quiet: work that has begun takes long, or never ends.
_LONGEST_ROUND: Final = 2 * LONG_ROUND
# The most slices that begin in one round.
_MOST: Final = 64
# Every waiting slice belongs to an open connection or to a reader of a log, and the limits of both are lower.
_MOST_WAITING: Final = 1_000_000


class Slices:
    """The slices of one event loop. `now` returns seconds from any fixed time."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._waiting: FairQueue[Hashable, asyncio.Future[None]] = FairQueue(_MOST_WAITING)
        self._allowed = self._left = _MOST  # slices that may begin in this round: in all, and still
        self._begun = 0  # slices of this round
        self._is_continued = False  # this iteration is in the same round as the one before
        self._is_counting = False  # the end of this iteration is scheduled
        self._began = self._round_began = 0.0  # this iteration, and this round

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
        self._begun += 1
        self._count()

    def _count(self) -> None:
        if not self._is_counting:
            self._is_counting, self._began = True, self._now()
            if not self._is_continued:
                self._round_began = self._began
            asyncio.get_running_loop().call_soon(self._end_iteration)

    def _end_iteration(self) -> None:
        """Begin the slices of the next round, unless what was ready in this iteration can continue in the next one."""
        self._is_counting = False
        now, someone_waits = self._now(), bool(self._waiting)
        if someone_waits and self._is_busy(now):
            self._is_continued, self._left = True, 0
            self._count()
            return
        self._allowed = self._adapt(now - self._round_began, someone_waits=someone_waits)
        self._is_continued, self._left, self._begun = False, self._allowed, 0
        if someone_waits:
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        while self._left and self._waiting:
            following = self._waiting.pop()
            if not following.done():  # else it was cancelled a moment ago
                following.set_result(None)
                self._begin_one()
        if self._waiting:
            self._count()

    def _adapt(self, seconds: float, *, someone_waits: bool) -> int:
        """Return how many slices may begin in the next round, after one that took this time."""
        if seconds > LONG_ROUND:
            return max(1, int(self._begun * LONG_ROUND / seconds))
        # A round in which fewer began than were allowed does not show that so many are short.
        return min(2 * self._allowed, _MOST) if someone_waits else self._allowed

    def _is_busy(self, now: float) -> bool:
        """Return whether other work was ready in the iteration, which may continue in the next one of the round."""
        return now - self._began > _QUIET_ITERATION and now - self._round_began < _LONGEST_ROUND
