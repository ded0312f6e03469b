"""Bounds how many logs a process reads at once, and how many begin in a second. With more logs, they take turns."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_TURN: Final = 10.0  # seconds of reading after which a log gives its place to one that waits
# Each read opens a connection. An API server that is asked for a thousand at once answers many of them too late.
_BEGIN_AT_ONCE: Final = 10
_BEGIN_EVERY: Final = 0.1  # seconds


class ReadSlots:
    """Lets `most` blocks run at once, in the order of their requests."""

    def __init__(self, most: int) -> None:
        self._slots = asyncio.Semaphore(most)
        self._pace = asyncio.Semaphore(_BEGIN_AT_ONCE)
        self.reading = 0
        self.waiting = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator["ReadTurn"]:
        """Run the block when there is a place. It ends soon after its turn is over."""
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.reading += 1
        try:
            await self._pace.acquire()
            asyncio.get_running_loop().call_later(_BEGIN_EVERY, self._pace.release)
            yield ReadTurn(self, asyncio.get_running_loop().time() + _TURN)
        finally:
            self.reading -= 1
            self._slots.release()


class ReadTurn:
    """The right to read one log. It lasts until it is over and another log waits."""

    def __init__(self, slots: ReadSlots, until: float) -> None:
        self._slots = slots
        self._until = until

    @property
    def left(self) -> float:
        """The seconds of the turn that are left; 0 if it has gone on because nobody waited."""
        return max(0.0, self._until - asyncio.get_running_loop().time())

    @property
    def is_over(self) -> bool:
        """Whether the log must give its place to another one now."""
        return self._slots.waiting > 0 and asyncio.get_running_loop().time() >= self._until
