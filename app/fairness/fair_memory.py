"""Memory that callers share: each request takes bytes of it before it needs them, in turns of callers.

request ─▶ it fits ─▶ the request holds the bytes ─▶ released
└▶ it waits, callers in turn ─▶ what waits for slow clients is evicted ─▶ it fits
└▶ it does not fit in time, or too many wait ─▶ refused
"""

import asyncio
from collections.abc import Hashable
from functools import partial
from typing import Final, Protocol, TypeAlias

from app.fairness.byte_budget import ByteBudget, ByteHolder
from app.fairness.fair_queue import FairQueue

WAIT_SECONDS: Final = 10.0
"""Seconds after which a request that waits is refused, because its client would repeat it before an answer."""
# Seconds between two searches for clients that have become slow.
_SEARCH_SECONDS: Final = 1.0


class NoRoomError(Exception):
    """The memory has been in use for too long, or too many requests wait for it."""


class ByteHolderForCaller(ByteHolder, Protocol):
    """What holds bytes for a caller."""

    key: Hashable
    held: int


_Entry: TypeAlias = tuple[ByteHolderForCaller, int, asyncio.Future[None]]  # what waits for so many bytes


class FairMemory:
    """The bytes that the requests of one event loop may hold, those of one caller `share` of them; by default half.

    At most `max_waiting` requests wait. If more arrive, the newest one of a caller with the most of them is refused.
    """

    def __init__(self, max_bytes: int, *, max_waiting: int, share: int | None = None) -> None:
        self.budget = ByteBudget(max_bytes)
        self.share = max_bytes // 2 if share is None else share
        self._of_key: dict[Hashable, ByteBudget] = {}  # of callers that hold some
        self._waiting: FairQueue[Hashable, _Entry] = FairQueue(max_waiting)
        self._next_search: asyncio.TimerHandle | None = None  # one for all that wait

    async def take(self, holder: ByteHolderForCaller, count: int) -> None:
        """Wait until the bytes fit. More than the share of one caller count as the share.

        Raises:
            NoRoomError: there was no room in time, or too many requests wait.
        """
        count = min(count, self.share)
        own = asyncio.get_running_loop().create_future()
        entry, key = (holder, count, own), holder.key
        dropped = self._waiting.push(key, entry)
        if dropped is not None:
            dropped[2].cancel()
        self._admit()
        if not own.done():
            self._schedule_search()
            try:
                await asyncio.wait({own}, timeout=WAIT_SECONDS)
            finally:
                self._waiting.remove(key, entry)
        if not own.done() or own.cancelled():
            raise NoRoomError

    def change(self, holder: ByteHolderForCaller, count: int) -> None:
        """Set the bytes that a request holds, and admit others if it released some."""
        before = holder.held
        self.count(holder, count)
        if count < before:
            self._admit()

    def count(self, holder: ByteHolderForCaller, count: int) -> None:
        """Set the bytes that a request holds."""
        before, holder.held = holder.held, count
        own = self._of_key.setdefault(holder.key, ByteBudget(self.share))
        for budget in (self.budget, own):
            budget.release(holder, before)
            if count:
                budget.add(holder, count)
        if not own.held:
            del self._of_key[holder.key]

    def _admit(self) -> None:
        """Give the memory to those that wait and fit, in turn."""
        while (found := self._waiting.pop_first(self._fits)) is not None:
            holder, count, own = found
            self.count(holder, count)
            own.set_result(None)

    def _schedule_search(self) -> None:
        if self._next_search is None:
            self._next_search = asyncio.get_running_loop().call_later(_SEARCH_SECONDS, self._search)

    def _search(self) -> None:
        """Evict what waits for slow clients for all that wait: first that of callers whose share is full, then any."""
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
