"""What the bodies of requests may take of the memory of a process: of each, and of all that it holds at once."""

import asyncio
import enum
from typing import Final

from starlette.types import Message, Receive

# Smaller bodies are not counted, so that large ones keep no ordinary submission out.
UNCOUNTED_BYTES: Final = 16 * 1024
# Seconds for which a body may be incomplete before one that needs its memory takes its place. A client that sends its
# body piece by piece thus keeps nobody out for longer.
SAFE_SECONDS: Final = 5.0


class Excess(enum.Enum):
    """Which limit a body would exceed."""

    OF_ONE = "one"
    OF_ALL = "all"


class BodyBudget:
    """The bytes of request bodies that a process may hold at once; `held` are those that it holds.

    Bytes count once the application reads them. Before that, the server holds at most 128 KiB of each connection.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held = 0
        self._counted: dict[Receipt, None] = {}  # the oldest first

    def take(self, receipt: "Receipt", count: int, now: float) -> bool:
        """Count bytes of a body; False if there is no room, not even after slow bodies have lost theirs."""
        if self.held + count > self.max_bytes:
            self._make_room(receipt, count, now)
        if self.held + count > self.max_bytes:
            return False
        self.held += count
        self._counted.setdefault(receipt)
        return True

    def give_back(self, receipt: "Receipt", count: int) -> None:
        self.held -= count
        self._counted.pop(receipt, None)

    def _make_room(self, newcomer: "Receipt", count: int, now: float) -> None:
        for receipt in list(self._counted):
            if self.held + count <= self.max_bytes:
                return
            if receipt is not newcomer and receipt.since + SAFE_SECONDS <= now:
                receipt.evict()


class Receipt:
    """The body of one request as it arrives. It counts against the budget until `release`, and never after it.

    `since` is when it began, by the clock of the event loop.
    """

    def __init__(self, max_bytes: int, budget: BodyBudget, since: float) -> None:
        self.since = since
        self.is_evicted = False
        self._max_bytes = max_bytes
        self._budget = budget
        self._received = 0
        self._held = 0
        self._released = False
        self._is_incomplete = True
        self._waiting: asyncio.Timeout | None = None  # only while the rest of the body is awaited

    async def next(self, receive: Receive) -> Message:
        """The next message of the request.

        Raises:
            TimeoutError: the body lost its place while it waited for the message; `is_evicted` says so.
        """
        async with asyncio.timeout(None) as waiting:
            self._waiting = waiting if self._is_incomplete else None
            try:
                message = await receive()
            finally:
                self._waiting = None
        if self.is_evicted:
            raise TimeoutError  # the message came in the same turn of the event loop
        self._is_incomplete = message.get("more_body", False)
        return message

    def evict(self) -> None:
        """Free the memory of a body whose client is slow. A complete body keeps its memory: its request is at work."""
        if self._waiting is not None:
            self._waiting.reschedule(0)
            self.is_evicted = True
            self.release()

    def add(self, count: int, now: float) -> Excess | None:
        """Count a piece that has arrived; returns the limit that it exceeds, if any."""
        self._received += count
        if self._received > self._max_bytes:
            return Excess.OF_ONE
        if self._released or self._received <= UNCOUNTED_BYTES:
            return None
        wanted = self._received - self._held
        if not self._budget.take(self, wanted, now):
            return Excess.OF_ALL
        self._held += wanted
        return None

    def release(self) -> None:
        self._budget.give_back(self, self._held)
        self._held = 0
        self._released = True
