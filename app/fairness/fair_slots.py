"""A bounded number of slots, for example connections. Callers that wait for one take turns, each with its oldest wait.

A caller that ends gives its slot to the next one.
"""

import asyncio
from collections.abc import Hashable

from app.fairness.fair_queue import FairQueue


class NoSlotError(Exception):
    """Too many callers wait for a slot. This one has none."""


class FairSlots:
    """Slots for `count` callers at a time. At most `max_waiting` others wait, and keys get a free slot in turn.

    If more arrive, the newest wait of a key with the most waits ends with NoSlotError.
    """

    def __init__(self, count: int, max_waiting: int) -> None:
        self._free = count
        self._waiting: FairQueue[Hashable, asyncio.Future[None]] = FairQueue(max_waiting)

    @property
    def waiting(self) -> int:
        """The number of callers that wait."""
        return len(self._waiting)

    async def take(self, key: Hashable, seconds: float | None = None) -> None:
        """Return when the caller with this key has a slot, which it must give back.

        Raises:
            NoSlotError: too many callers wait.
            TimeoutError: it has waited for so many seconds.
        """
        if self._free:
            self._free -= 1
            return
        own = asyncio.get_running_loop().create_future()
        dropped = self._waiting.push(key, own)
        if dropped is own:
            raise NoSlotError
        if dropped is not None and not dropped.done():
            dropped.set_exception(NoSlotError())
        async with asyncio.timeout(seconds):
            try:
                await own
            except asyncio.CancelledError:
                # Its turn may have come at the same time.
                if not self._waiting.remove(key, own) and not own.cancelled() and own.exception() is None:
                    self.release()
                raise

    def release(self) -> None:
        """Give the slot of a caller that has ended to the next one."""
        while self._waiting:
            following = self._waiting.pop()
            # A wait that was cancelled a moment ago is still in the queue.
            if not following.done():
                following.set_result(None)
                return
        self._free += 1
