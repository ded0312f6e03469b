"""The publisher numbers feed entries soon after their commit. Every process has one; a lock lets one work at a time.

A hint after a pause is served at once. The commits that follow within `interval` share the next transaction: a
notification follows at most once in this time anyway (`app.db.postgres.notifications`), so readers get them no later.
"""

import asyncio

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import rounds
from app.db.feed import entries
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.notifications import FEED, Notifier

# In seconds. Another publisher holds the lock for one short transaction, unless its process is frozen.
_TURNS = ExponentialBackoff(first=0.01, longest=0.25)


class Publisher:
    """Publishes after hints, and every `poll` seconds for processes that died before they published.

    It pauses for `interval` seconds after each publication.
    """

    def __init__(
        self, db: Database, notifier: Notifier, *, poll: float = 1.0, interval: float = 0.02, batch: int = 1000
    ) -> None:
        self._db = db
        self._notifier = notifier
        self._poll = poll
        self._interval = interval
        self._batch = batch
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """Report that a transaction with feed entries has committed."""
        self._hinted.set()

    async def run(self) -> None:
        for _ in rounds():
            # Before the work, so that a hint that arrives during it is not lost.
            self._hinted.clear()
            try:
                await self.publish_all()
            except DatabaseUnavailable:
                await asyncio.sleep(self._poll)  # the entries stay in the table until the database answers
                continue
            await asyncio.sleep(self._interval)
            try:
                async with asyncio.timeout(self._poll):
                    await self._hinted.wait()
            except TimeoutError:
                continue

    async def publish_all(self) -> None:
        """Number entries until none is left. Each later commit is followed by its own hint."""
        in_vain = 0
        for _ in rounds():
            published = await entries.publish(self._db, self._batch)
            if published is None:
                in_vain += 1
                await asyncio.sleep(_TURNS.delay(in_vain))
                continue
            in_vain = 0
            if published:
                self._notifier.hint(FEED)
            if published < self._batch:
                return
