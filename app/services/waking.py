"""Wakes the streams and long polls that wait for changes, a few at a time."""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from app.cancellation import rounds
from app.services.positions import Position

# Waiters woken in one turn of the event loop. A woken stream needs about 100 microseconds, so a turn takes 2 ms.
_WOKEN_AT_ONCE: Final = 20


@dataclass(slots=True, eq=False)
class Waiter:
    """One waiting stream or poll.

    Args:
        is_queued: whether the waker is going to wake it.
        changed_after: no event before this position concerns it; None if unknown.
    """

    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_queued: bool = False
    changed_after: Position | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing has happened since the last `wait`."""
        return not self.is_queued and not self._woken.is_set()

    def wake(self) -> None:
        self.is_queued = False
        self._woken.set()

    def take_changed_after(self) -> Position | None:
        """Return `changed_after`, and set it to None."""
        position, self.changed_after = self.changed_after, None
        return position

    async def wait(self, seconds: float) -> bool:
        """Wait for an event of the interest, or for the end of the process. Return False after `seconds` without one.

        Each wake-up ends one `wait`, now or later.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


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
