"""Reads what jobs have used, with its cost."""

import asyncio
from collections.abc import Hashable, Sequence
from typing import Final

from app.base.cancellation import rounds
from app.base.clock import Clock
from app.base.offload import offload
from app.db.jobs.rows import JobRow
from app.db.postgres.engine import Database
from app.db.usage import reads as usage_reads
from app.domain.usage.holds import milliseconds
from app.domain.usage.pages import Cursor
from app.domain.usage.prices import Prices
from app.domain.usage.query import UsageQuery, UsageRow
from app.domain.usage.report import ShownUsage, show, usage_of_job
from app.services.limits.turns import Overloaded, Turns, room_for

# What a sum takes, as a row, with its exact numbers and as text. A page of the most sums leaves some of the share of a
# caller, for what is sent.
_SUM_BYTES: Final = 2304
# Seconds between two reads of the labels that have values. Each of them examines all groups.
_LABELS_SECONDS: Final = 60.0
# Seconds before a page is asked for again that an overloaded process has refused.
_AGAIN: Final = 1.0


class UsageReader:
    """Reads usage from PostgreSQL. `prices` are None if the installation has none.

    `labels` are the keys of the labels by which it adds up.
    """

    def __init__(self, db: Database, lists: Turns, clock: Clock, prices: Prices | None, labels: Sequence[str]) -> None:
        self._db = db
        self._lists = lists
        self._clock = clock
        self.prices = prices
        self._labels = set(labels)
        self._labels_read_at = float("-inf")

    async def labels(self, wanted: Sequence[str], caller: Hashable) -> frozenset[str]:
        """Return the keys of the labels that usage can be summed by: those of the setting and those with stored values.

        The stored ones are read from PostgreSQL only if a wanted key is unknown, and at most once a minute.
        """
        if self._lacks(wanted):
            async with self._lists.turn(caller):
                if self._lacks(wanted):  # another request may have read them meanwhile
                    self._labels |= await usage_reads.read_label_keys(self._db)
                    self._labels_read_at = self._clock.monotonic()
        return frozenset(self._labels)

    def _lacks(self, wanted: Sequence[str]) -> bool:
        """Return whether some label is not known of which a value may have been stored since the last read."""
        is_due = self._clock.monotonic() - self._labels_read_at >= _LABELS_SECONDS
        return is_due and not self._labels.issuperset(wanted)

    async def page(
        self, query: UsageQuery, behind: Cursor, size: int, caller: Hashable, *, patience: float = 0.0
    ) -> tuple[list[ShownUsage], Cursor | None]:
        """Return some groups behind a cursor, and the cursor of the next page; None if no other group follows.

        While the process is overloaded, ask again for `patience` seconds.

        Raises:
            Overloaded: there was no turn or no memory.
        """
        until = self._clock.monotonic() + patience
        for _ in rounds():
            try:
                return await self._page(query, behind, size, caller)
            except Overloaded:
                if self._clock.monotonic() + _AGAIN > until:
                    raise
            await asyncio.sleep(_AGAIN)
        raise AssertionError("rounds never ends")

    async def _page(
        self, query: UsageQuery, behind: Cursor, size: int, caller: Hashable
    ) -> tuple[list[ShownUsage], Cursor | None]:
        async with self._lists.turn(caller):
            await room_for(usage_reads.MOST_SUMS * _SUM_BYTES)
            part = await usage_reads.read_page(self._db, query, behind, size, milliseconds(self._clock.now()))
        return await offload(_show_all, part.rows, self.prices), part.end

    async def of_job(self, row: JobRow) -> ShownUsage:
        """Return the usage of a job until now."""
        # A hold that ends between the two reads is counted in neither or in both, for the time of one request.
        rates = await usage_reads.rates_of(self._db, row.uid)
        return show(usage_of_job(row.status.usage, rates, milliseconds(self._clock.now())), self.prices)


def _show_all(rows: Sequence[UsageRow], prices: Prices | None) -> list[ShownUsage]:
    return [show(row, prices) for row in rows]
