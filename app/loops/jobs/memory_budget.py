"""Bounds the memory of the reconciler: the estimated size of a job, and how many jobs are in work at once.

A reconcile loads all stored replicas of a job, so its memory grows with the number of replicas and with the manifest.
Jobs that are ready together are divided into batches whose estimated memory is bounded. A job that is larger than this
bound is a batch of its own.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from app.db.jobs.controller import JobSize

MIB: Final = 1024 * 1024
# Measured: row, record, decision and write of one replica whose pod has one container.
REPLICA_BYTES: Final = 8 * 1024
# Decoded JSON of many short strings takes about twelve times as much memory as its text.
DECODED: Final = 12
BATCH_BYTES: Final = 96 * MIB
ACTING_BYTES: Final = 64 * MIB
# The least that a job counts while its actions run, so that at most 64 jobs of a namespace act at once.
LEAST_ACTING_BYTES: Final = MIB


def reconcile_bytes(size: JobSize) -> int:
    """Return the estimated memory of one reconcile of a job."""
    return size.replicas * REPLICA_BYTES + size.manifest_bytes * DECODED


def acting_bytes(size: JobSize) -> int:
    """Return the estimated memory of a job's plan, which is kept until the actions of the reconcile are done."""
    return LEAST_ACTING_BYTES + size.manifest_bytes * DECODED


def batches(uids: Sequence[UUID], sizes: Mapping[UUID, JobSize], limit: int = BATCH_BYTES) -> Iterator[Sequence[UUID]]:
    """Divide jobs, in their order, into batches whose estimated memory is within the limit. Every batch has a job."""
    group: list[UUID] = []
    taken = 0
    for uid in uids:
        needed = reconcile_bytes(sizes[uid])
        if group and taken + needed > limit:
            yield group
            group, taken = [], 0
        group.append(uid)
        taken += needed
    if group:
        yield group


class MemoryBudget:
    """A bound on the sum of the amounts that are taken at once, kept apart for small and for large amounts.

    A small amount waits for a moment until it fits. A large one, over an eighth of the bound, is refused at once,
    because the caller that waits for it would keep small ones waiting too. A single large amount may exceed the bound.

    The bound for small amounts is that of each owner, which is a namespace. All owners together have a quarter more,
    and one that has none yet may take its first beyond that, up to twice the bound. So owners whose amounts are taken
    for long do not keep others waiting.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._small: Counter[str] = Counter()
        self._large = 0
        self._changed = asyncio.Event()

    async def take(self, amount: int, owner: str, until: float) -> bool:
        """Take the amount for an owner. A small one waits for room until this time. Return False if it does not fit."""
        if self._is_large(amount):
            # If nothing is taken, any amount fits. Otherwise a job beyond the bound could never act.
            fits = not self._large or self._large + amount <= self._limit
            self._large += amount if fits else 0
            return fits
        while not self._has_room(amount, owner):
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return False
        self._small[owner] += amount
        return True

    def release(self, amount: int, owner: str) -> None:
        if self._is_large(amount):
            self._large -= amount
            return
        self._small[owner] -= amount
        if not self._small[owner]:
            del self._small[owner]
        self._changed.set()

    def _has_room(self, amount: int, owner: str) -> bool:
        own = self._small[owner]
        of_all = self._limit + self._limit // 4 if own else 2 * self._limit
        return own + amount <= self._limit and self._small.total() + amount <= of_all

    def _is_large(self, amount: int) -> bool:
        return amount > self._limit // 8
