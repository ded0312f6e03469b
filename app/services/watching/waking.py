"""Wakes the streams and long polls that wait for changes, a few at a time.

    change ─▶ queue ─▶ `serve` of the request ─▶ True: the request waits on
                       └ it has none: it runs   └ False: it runs

Running the task of a stream costs as much as the write for which it would run.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from app.base.cancellation import rounds
from app.services.watching.positions import Position

# Waiters woken in one iteration of the event loop. A request that runs needs about 100 microseconds, so an iteration
# takes at most 2 ms.
_WOKEN_AT_ONCE: Final = 20

# Does what the request would do after it is woken. Returns False if the request itself has to run. Raises no error.
Serve: TypeAlias = Callable[[], bool]


class Waiter:
    """One waiting stream or poll.

    Attributes:
        is_queued: whether the waker is going to wake it.
        changed_after: no event before this position concerns it; None if unknown.
    """

    __slots__ = ("_is_woken", "_serve", "_served_at", "_sleep", "changed_after", "is_queued")

    def __init__(self) -> None:
        self.is_queued = False
        self.changed_after: Position | None = None
        self._is_woken = False
        self._sleep: asyncio.Future[None] | None = None  # while the request waits
        self._serve: Serve | None = None
        self._served_at = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing has happened since the last `wait`, or all that has happened was served."""
        return not self.is_queued and not self._is_woken

    def wake(self) -> None:
        self.is_queued = False
        sleep = self._sleep
        # A wait that is over or cancelled serves no more: the request has not run yet, and may be about to end.
        if sleep is None or sleep.done():
            self._is_woken = True
        elif self._serve is not None and self._serve():
            self._served_at = sleep.get_loop().time()
        else:
            self._is_woken = True
            sleep.set_result(None)

    def take_changed_after(self) -> Position | None:
        """Return `changed_after`, and set it to None."""
        position, self.changed_after = self.changed_after, None
        return position

    async def wait(self, seconds: float, serve: Serve | None = None) -> bool:
        """Wait for an event of the interest, or for the end of the process. Return False after `seconds` without one.

        Each wake-up ends one `wait`, now or later. One that comes during the wait and that `serve` serves does not: the
        wait goes on, and its seconds begin again.
        """
        loop = asyncio.get_running_loop()
        self._served_at = loop.time()
        while not self._is_woken and (left := self._served_at + seconds - loop.time()) > 0:
            sleep = loop.create_future()
            self._sleep, self._serve = sleep, serve
            # No asyncio.timeout: its exceptions keep this frame, and thus the request, until garbage is collected.
            alarm = loop.call_later(left, _end, sleep)
            try:
                await sleep
            finally:
                alarm.cancel()
                # `serve` refers to the request, which refers to this: the cycle would keep both in memory.
                self._sleep = self._serve = None
        is_woken, self._is_woken = self._is_woken, False
        return is_woken


def _end(sleep: "asyncio.Future[None]") -> None:
    if not sleep.done():
        sleep.set_result(None)


class Waker:
    """Wakes waiters in portions, so that the event loop runs other tasks in between."""

    def __init__(self) -> None:
        self._queue: deque[Waiter] = deque()
        self._filled = asyncio.Event()

    def wake(self, waiters: Iterable[Waiter], changed_after: Position | None = None) -> None:
        """Queue the waiters. A waiter that is queued already is woken once for both."""
        for waiter in waiters:
            # A waiter that was woken before has not read since, so its earlier position stays.
            if waiter.is_idle:
                waiter.changed_after = changed_after
            if not waiter.is_queued:
                waiter.is_queued = True
                self._queue.append(waiter)
        self._filled.set()

    async def run(self) -> None:
        for _ in rounds():
            await self._filled.wait()
            self._filled.clear()
            while self._queue:
                for _ in range(min(_WOKEN_AT_ONCE, len(self._queue))):
                    self._queue.popleft().wake()
                await asyncio.sleep(0)
