"""The memory for answers: from the decoding of a body or the read of rows until the client has taken the bytes.

request ─▶ it fits ─▶ read, render, send ─▶ released
└▶ it waits, callers in turn ─▶ slow readers are evicted ─▶ it fits
└▶ it does not fit in time ─▶ refused
"""

import asyncio
from collections.abc import Hashable
from functools import partial
from typing import Final, Protocol, TypeAlias

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


_Entry: TypeAlias = tuple[HeldAnswer, int, asyncio.Future[None]]  # an answer that waits for so many bytes


class AnswerMemory:
    """The memory for the answers of one event loop. One caller may hold half of it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.budget = ByteBudget(max_bytes)
        self.share = max_bytes // 2
        self._of_key: dict[Hashable, ByteBudget] = {}  # of callers that hold some
        self._waiting: FairQueue[Hashable, _Entry] = FairQueue(_MOST_WAITING)
        self._next_search: asyncio.TimerHandle | None = None  # one for all that wait

    async def take(self, answer: HeldAnswer, count: int) -> None:
        """Wait until the bytes fit. More than the share of one caller count as the share."""
        count = min(count, self.share)
        own = asyncio.get_running_loop().create_future()
        entry = (answer, count, own)
        key = answer.key
        self._waiting.push(key, entry)
        self._admit()
        if own.done():
            return
        self._schedule_search()
        try:
            await asyncio.wait({own}, timeout=WAIT_SECONDS)
            if not own.done():
                raise NoRoomError
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

    def _admit(self) -> None:
        """Give the memory to those that wait and fit, in turn."""
        while (found := self._waiting.pop_first(self._fits)) is not None:
            answer, count, own = found
            self.count(answer, count)
            own.set_result(None)

    def _schedule_search(self) -> None:
        if self._next_search is None:
            self._next_search = asyncio.get_running_loop().call_later(_SEARCH_SECONDS, self._search)

    def _search(self) -> None:
        """Evict slow readers for all that wait: first those of callers whose share is full, then any."""
        self._next_search = None
        if self._waiting:
            self._schedule_search()
        now = asyncio.get_running_loop().time()
        for key, own in list(self._of_key.items()):
            if self._lacks_share(key):
                own.evict_slow(now, is_enough=partial(self._has_share, key))
        self.budget.evict_slow(now, is_enough=self._has_memory)
        self._admit()

    def _has_share(self, key: Hashable) -> bool:
        self._admit()
        return not self._lacks_share(key)

    def _has_memory(self) -> bool:
        self._admit()
        return not self._waiting.has_first(self._lacks_memory)

    def _lacks_share(self, key: Hashable) -> bool:
        entry = self._waiting.first(key)
        return entry is not None and not self._fits_share(key, entry)

    def _lacks_memory(self, key: Hashable, entry: _Entry) -> bool:
        return self._fits_share(key, entry) and not self.budget.fits(entry[1])

    def _fits_share(self, key: Hashable, entry: _Entry) -> bool:
        own = self._of_key.get(key)
        return own is None or own.fits(entry[1])

    def _fits(self, key: Hashable, entry: _Entry) -> bool:
        return self.budget.fits(entry[1]) and self._fits_share(key, entry)
