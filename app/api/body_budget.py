"""Bounds the memory for request bodies: for each body, and for all bodies of the process together."""

import asyncio
import enum
from typing import Final

from starlette.types import Message, Receive

# Smaller bodies are not counted, so that large bodies never cause the refusal of an ordinary submission.
UNCOUNTED_BYTES: Final = 16 * 1024
# Seconds for which a body may be incomplete. After that, another body that needs the memory evicts it. A client that
# sends its body slowly therefore blocks other clients no longer than this.
GRACE_SECONDS: Final = 5.0


class ExceededLimit(enum.Enum):
    """The limit that a body would exceed."""

    ONE_BODY = "one body"
    ALL_BODIES = "all bodies"


class BodyBudget:
    """The bytes of request bodies that a process may hold at once; `held` is the number that it holds.

    Bytes count once the application reads them. Before that, the server holds at most 128 KiB for each connection.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held = 0
        self._counted: dict[IncomingBody, None] = {}  # the oldest first

    def reserve(self, body: "IncomingBody", count: int, now: float) -> bool:
        """Count bytes of a body. Return False if they do not fit even after the eviction of slow bodies."""
        if self.held + count > self.max_bytes:
            self._evict_slow(body, count, now)
        if self.held + count > self.max_bytes:
            return False
        self.held += count
        self._counted.setdefault(body)
        return True

    def release(self, body: "IncomingBody", count: int) -> None:
        self.held -= count
        self._counted.pop(body, None)

    def _evict_slow(self, newcomer: "IncomingBody", count: int, now: float) -> None:
        for body in list(self._counted):
            if self.held + count <= self.max_bytes:
                return
            if body is not newcomer and body.since + GRACE_SECONDS <= now:
                body.evict()


class IncomingBody:
    """The body of one request while it arrives. It counts against the budget until `release`, and never after it.

    Args:
        max_bytes: the limit for this body.
        since: when the request began, by the clock of the event loop.
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
