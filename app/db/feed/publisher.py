"""Numbers the feed soon after each commit. Every process that writes has one; one at a time does the work."""

import asyncio

from app.cancellation import rounds
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.db.feed import entries
from app.db.notifications import FEED, Notifier

# Another publisher holds the lock for one short transaction.
_TURN_SECONDS = 0.01


class Publisher:
    """`run` publishes when hinted, and every `poll` seconds what a process that died has left."""

    def __init__(self, db: Database, notifier: Notifier, *, poll: float = 1.0, batch: int = 1000) -> None:
        self._db = db
        self._notifier = notifier
        self._poll = poll
        self._batch = batch
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """Something with a feed row has been committed."""
        self._hinted.set()

    async def run(self) -> None:
        for _ in rounds():
            self._hinted.clear()
            try:
                await self.publish_all()
            except DatabaseUnavailable:
                await asyncio.sleep(self._poll)  # readers go on with what there is; the rows wait
                continue
            try:
                async with asyncio.timeout(self._poll):
                    await self._hinted.wait()
            except TimeoutError:
                continue

    async def publish_all(self) -> None:
        """Until nothing is left to number. What is committed while this looks is followed by a hint of its own."""
        while True:
            published = await entries.publish(self._db, self._batch)
            if published is None:
                await asyncio.sleep(_TURN_SECONDS)
                continue
            if published:
                self._notifier.hint(FEED)
            if published < self._batch:
                return
