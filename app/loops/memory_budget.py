"""Keeps the memory of the reconciler within bounds: how much a job takes, and how many are worked on at once.

A pass loads the stored replicas of a job and decides on all of them, so its memory grows with the number of replicas
and with the manifest. Jobs that are due together are taken in portions whose estimated memory fits; a job that is
larger than a portion is taken alone.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from app.db.controller import JobSize

MIB: Final = 1024 * 1024
# Row, record, decision and write of one replica whose pod has one container.
REPLICA_BYTES: Final = 8 * 1024
# Decoded JSON of many short strings takes about twelve times as much memory as its text.
DECODED: Final = 12
PORTION_BYTES: Final = 96 * MIB
ACTING_BYTES: Final = 64 * MIB
# What a job takes at least while its actions are carried out: no more than 64 jobs are acted upon at once.
LEAST_ACTING_BYTES: Final = MIB


def pass_bytes(size: JobSize) -> int:
    """Estimated memory of a pass over a job."""
    return size.replicas * REPLICA_BYTES + size.manifest_bytes * DECODED


def acting_bytes(size: JobSize) -> int:
    """Estimated memory of the plan of a job, which is kept until the actions of the pass are done."""
    return LEAST_ACTING_BYTES + size.manifest_bytes * DECODED


def portions(
    uids: Sequence[UUID], sizes: Mapping[UUID, JobSize], limit: int = PORTION_BYTES
) -> Iterator[Sequence[UUID]]:
    """The jobs in their order, in groups whose estimated memory is within the limit or that hold one job."""
    group: list[UUID] = []
    taken = 0
    for uid in uids:
        needed = pass_bytes(sizes[uid])
        if group and taken + needed > limit:
            yield group
            group, taken = [], 0
        group.append(uid)
        taken += needed
    if group:
        yield group


class Room:
    """A bound on the sum of what is taken at once, apart for ordinary and for large amounts.

    An ordinary amount waits for room. A large one (over an eighth of the bound) is refused instead, so that those who
    come after it need not wait until large ones are done; alone it may exceed the bound.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = {False: 0, True: 0}
        self._changed = asyncio.Event()

    async def take(self, amount: int) -> bool:
        """Take it, or return False: try again later."""
        is_large = self._is_large(amount)
        while self._taken[is_large] and self._taken[is_large] + amount > self._limit:
            if is_large:
                return False
            self._changed.clear()
            await self._changed.wait()
        self._taken[is_large] += amount
        return True

    def give_back(self, amount: int) -> None:
        self._taken[self._is_large(amount)] -= amount
        self._changed.set()

    def _is_large(self, amount: int) -> bool:
        return amount > self._limit // 8
