"""The memory for answers: from the decoding of a body or the read of rows until the client has taken the bytes.

request ─▶ it fits ─▶ read, render, send ─▶ released
└▶ it waits, callers in turn ─▶ slow readers are evicted ─▶ it fits
└▶ it does not fit in time ─▶ refused
"""

import asyncio
from collections.abc import Hashable
from typing import Final, Protocol

from app.fairness.byte_budget import ByteBudget
from app.fairness.fair_queue import FairQueue

MAX_BYTES: Final = 64 * 1024 * 1024
"""The bytes of all answers in progress. Four lists, or two large jobs, are read at once."""
WAIT_SECONDS: Final = 10.0
"""Seconds after which a request that waits is refused, because its client would repeat it before an answer."""
# Seconds between two searches for readers that have become slow.
_SEARCH_SECONDS: Final = 1.0
_MOST_WAITING: Final = 1_000_000  # every waiting request has a connection, and their limit is lower


class NoRoomError(Exception):
    """The memory has been in use for too long."""


class Client(Protocol):
    """The connection of a client."""

    def abort(self) -> None:
        """End it at once."""

    def is_gone(self) -> bool:
        """Return whether it has ended."""


class HeldAnswer:
    """The bytes that one request holds. It releases them at its end."""

    def __init__(self, memory: "AnswerMemory", key: Hashable, client: Client) -> None:
        self.key = key
        self.since = float("inf")  # until the answer is sent, it does not wait for its client
        self.held = 0
        self._memory = memory
        self._client = client

    async def hold(self, count: int) -> None:
        """Hold this number of bytes in place of those before. Only the first bytes wait for room.

        An answer that would wait for more, while it holds some, could wait for another one that does the same.

        Raises:
            NoRoomError: there was no room in time, or the client has gone meanwhile.
        """
        if not self.held and count:
            await self._memory.take(self, count)
            if self._client.is_gone():
                self.release()
                raise NoRoomError
        else:
            self.resize(count)

    def resize(self, count: int) -> None:
        """Hold this number of bytes, which the process has already."""
        self._memory.change(self, count)

    def begin_sending(self) -> None:
        self.since = asyncio.get_running_loop().time()

    def evict(self) -> None:
        self._client.abort()
        self._memory.count(self, 0)

    def release(self) -> None:
        if self.held:
            self._memory.change(self, 0)


class AnswerMemory:
    """The memory for the answers of one event loop. One caller may hold half of it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.budget = ByteBudget(max_bytes)
        self.share = max_bytes // 2
        self._of_key: dict[Hashable, ByteBudget] = {}  # of callers that hold some
        self._waiting: FairQueue[Hashable, tuple[HeldAnswer, int, asyncio.Future[None]]] = FairQueue(_MOST_WAITING)

    async def take(self, answer: HeldAnswer, count: int) -> None:
        """Wait until the bytes fit. More than the share of one caller count as the share."""
        count = min(count, self.share)
        own = asyncio.get_running_loop().create_future()
        entry = (answer, count, own)
        key = answer.key
        self._waiting.push(key, entry)
        self._admit()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not own.done():
                    await asyncio.wait({own}, timeout=_SEARCH_SECONDS)
                    if not own.done():
                        self._evict_slow(answer, count)
        except TimeoutError:
            if not own.done():
                raise NoRoomError from None
        finally:
            self._waiting.remove(key, entry)

    def change(self, answer: HeldAnswer, count: int) -> None:
        """Set the bytes that an answer holds, and admit others if it released some."""
        before = answer.held
        self.count(answer, count)
        if count < before:
            self._admit()

    def count(self, answer: HeldAnswer, count: int) -> None:
        """Set the bytes that an answer holds."""
        before, answer.held = answer.held, count
        own = self._of_key.setdefault(answer.key, ByteBudget(self.share))
        for budget in (self.budget, own):
            budget.release(answer, before)
            if count:
                budget.add(answer, count)
        if not own.held:
            del self._of_key[answer.key]

    def _evict_slow(self, newcomer: HeldAnswer, count: int) -> None:
        """Evict slow readers: those of the same caller until its share has room, then any until the memory has."""
        now = asyncio.get_running_loop().time()
        if own := self._of_key.get(newcomer.key):
            own.evict_slow(newcomer, count, now)
        self.budget.evict_slow(newcomer, count, now)
        self._admit()

    def _admit(self) -> None:
        """Give the memory to those that wait and fit, in turn."""
        while (found := self._waiting.pop_first(self._fits)) is not None:
            answer, count, own = found
            self.count(answer, count)
            own.set_result(None)

    def _fits(self, key: Hashable, entry: tuple[HeldAnswer, int, asyncio.Future[None]]) -> bool:
        count = entry[1]
        own = self._of_key.get(key)
        return self.budget.fits(count) and (own is None or own.fits(count))
