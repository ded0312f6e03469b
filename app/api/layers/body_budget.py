"""Bounds the memory for request bodies: for each body, and for all bodies of the process together.

Bytes count once the application reads them. Before that, the server holds at most 128 KiB for each connection.
"""

import asyncio
import enum

from starlette.types import Message, Receive

from app.fairness.byte_budget import UNCOUNTED_BYTES, ByteBudget


class ExceededLimit(enum.Enum):
    """The limit that a body would exceed."""

    ONE_BODY = "one body"
    ALL_BODIES = "all bodies"


class IncomingBody:
    """The body of one request while it arrives. It counts against the budget until `release`, and never after it.

    Args:
        max_bytes: the limit for this body.
        since: when the request began, by the clock of the event loop.
    """

    def __init__(self, max_bytes: int, budget: ByteBudget, since: float) -> None:
        self.since = since
        self.is_evicted = False
        self._max_bytes = max_bytes
        self._budget = budget
        self._received = 0
        self._held = 0
        self._released = False
        self._is_incomplete = True
        self._waiting: asyncio.Timeout | None = None  # set only while the application waits for the rest of the body

    async def next(self, receive: Receive) -> Message:
        """Return the next message of the request.

        Raises:
            TimeoutError: the body was evicted during the wait; `is_evicted` is then True.
        """
        async with asyncio.timeout(None) as waiting:
            self._waiting = waiting if self._is_incomplete else None
            try:
                message = await receive()
            finally:
                self._waiting = None
        if self.is_evicted:
            raise TimeoutError  # the message arrived in the same iteration of the event loop as the eviction
        self._is_incomplete = message.get("more_body", False)
        return message

    def evict(self) -> None:
        """Free the memory if the application waits for this body. A complete body stays: its request is in progress."""
        if self._waiting is not None:
            self._waiting.reschedule(0)
            self.is_evicted = True
            self.release()

    def add(self, count: int, now: float) -> ExceededLimit | None:
        """Count a piece that has arrived. Return the limit that the body exceeds, if any."""
        self._received += count
        if self._received > self._max_bytes:
            return ExceededLimit.ONE_BODY
        if self._released or self._received <= UNCOUNTED_BYTES:
            return None
        uncounted = self._received - self._held
        if not self._budget.reserve(self, uncounted, now):
            return ExceededLimit.ALL_BODIES
        self._held += uncounted
        return None

    def release(self) -> None:
        """Stop counting this body, now and for pieces that still arrive."""
        self._budget.release(self, self._held)
        self._held = 0
        self._released = True
