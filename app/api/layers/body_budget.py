"""Bounds the memory for request bodies: for each body, and for all bodies of the process together.

    head ─▶ room for the whole body ─▶ the rest is read ─▶ handler ─▶ answer begins ─▶ released
         └▶ it waits, callers in turn ─▶ no room in time ─▶ refused

Until there is room, the server reads no more from the client, and has up to 256 KiB of it.
"""

import asyncio
import enum
from collections.abc import Hashable
from typing import Final

from starlette.types import Message, Receive

from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.fairness.fair_memory import FairMemory, NoRoomError
from app.fairness.share import caller

# What the server has of them is 16 MiB at most.
_MOST_WAITING: Final = 64


class ExceededLimit(enum.Enum):
    """The limit that a body would exceed."""

    ONE_BODY = "one body"
    ALL_BODIES = "all bodies"


class BodyRefused(Exception):  # noqa: N818 - a signal from the body to the layer
    """A body exceeds a limit while the application reads it. `is_read` says that nothing of it is left to read."""

    def __init__(self, exceeded: ExceededLimit, *, is_read: bool) -> None:
        super().__init__(exceeded)
        self.exceeded = exceeded
        self.is_read = is_read


def body_memory(max_bytes_at_once: int, max_bytes: int) -> FairMemory:
    """Return the memory for all bodies, of which one caller may hold half, but always one body of `max_bytes`."""
    return FairMemory(max_bytes_at_once, max_waiting=_MOST_WAITING, share=max(max_bytes_at_once // 2, max_bytes))


class IncomingBody:
    """The body of one request while it arrives. It holds memory until `release`, and never after it.

    It takes the memory for all of its bytes at once, so that no two bodies wait for the rest of each other's.

    Args:
        declared: its length, above UNCOUNTED_BYTES; None if the head does not say it.
        max_bytes: the limit for this body.
    """

    def __init__(self, declared: int | None, max_bytes: int, memory: FairMemory) -> None:
        self.key: Hashable = None  # of the caller, who is known when the application begins to read
        self.since = 0.0  # when there was room
        self.held = 0
        self.is_evicted = False
        self._declared = declared
        self._max_bytes = max_bytes
        self._memory = memory
        self._received = 0
        self._released = False
        self._is_incomplete = True
        self._waiting: asyncio.Timeout | None = None  # set only while the application waits for the rest of the body

    async def next(self, receive: Receive) -> Message:
        """Return the next message of the request.

        Raises:
            BodyRefused: the body exceeds a limit.
        """
        if self._declared is not None:
            await self._hold(self._declared)
        message = await self._receive_from(receive)
        self._is_incomplete = message.get("more_body", False)
        self._received += len(message.get("body", b""))
        if self._received > self._max_bytes:
            raise BodyRefused(ExceededLimit.ONE_BODY, is_read=not self._is_incomplete)
        if self._declared is None and self._received > UNCOUNTED_BYTES:
            await self._hold(self._max_bytes)
        return message

    async def _hold(self, count: int) -> None:
        """Wait for the memory, unless the body has it or needs none any more."""
        if not self._needs_room():
            return
        self.key = caller()
        try:
            await self._memory.take(self, count)
        except NoRoomError:
            if self._needs_room():
                raise BodyRefused(ExceededLimit.ALL_BODIES, is_read=not self._is_incomplete) from None
        self.since = asyncio.get_running_loop().time()
        if self._released:  # meanwhile: the answer of a stream begins although nothing has read the body
            self.release()

    def _needs_room(self) -> bool:
        return not (self.held or self._released)

    async def _receive_from(self, receive: Receive) -> Message:
        evicted = BodyRefused(ExceededLimit.ALL_BODIES, is_read=False)
        try:
            async with asyncio.timeout(None) as waiting:
                self._waiting = waiting if self._is_incomplete else None
                try:
                    message = await receive()
                finally:
                    self._waiting = None
        except TimeoutError:
            if self.is_evicted:
                raise evicted from None
            raise
        if self.is_evicted:  # in the iteration of the event loop in which the message arrived
            raise evicted
        return message

    def evict(self) -> None:
        """Free the memory if the application waits for this body. A complete body stays: its request is in progress."""
        if self._waiting is not None:
            self._waiting.reschedule(0)
            self.is_evicted = True
            self._released = True
            self._memory.count(self, 0)

    def release(self) -> None:
        """Hold nothing, now and for pieces that still arrive."""
        self._released = True
        if self.held:
            self._memory.change(self, 0)
