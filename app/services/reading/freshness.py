"""How old the recorded status is, from the heartbeat of the controller."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from app.base.clock import Clock
from app.db.installation import heartbeats
from app.db.installation.heartbeats import Heartbeat
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable

_REFRESH_SECONDS: Final = 1.0  # every answer needs the heartbeat; one query per second serves them all
# A heartbeat that was read longer ago is not used while a newer one is read: after a pause without requests it would
# report a controller that has had contact all the time as stale.
_USABLE_SECONDS: Final = 3.0
_RUNNING: Final = "Running"
# A heartbeat from before this time is one of a controller that has never reached the cluster.
_EARLIEST_CONTACT: Final = datetime(1970, 1, 2, tzinfo=UTC)


class Freshness(NamedTuple):
    """`observed_at` is the time of the controller's last contact with the cluster, or None if there was none."""

    observed_at: datetime | None
    stale: bool


class FreshnessReader:
    """Caches the heartbeat. While one request refreshes it, other requests get the previous one if it is recent.

    `stale_after` is the age of the last contact from which status is stale.
    """

    def __init__(self, db: Database, clock: Clock, stale_after: timedelta) -> None:
        self._db = db
        self._clock = clock
        self._stale_after = stale_after
        self._beat: Heartbeat | None = None
        self._refreshed_at = float("-inf")
        self._refreshing = asyncio.Lock()

    async def heartbeat(self) -> Heartbeat | None:
        """Return the last heartbeat of the controller, or None if no controller ever ran."""
        if self._age() >= (_USABLE_SECONDS if self._refreshing.locked() else _REFRESH_SECONDS):
            async with self._refreshing:
                # The request that held the lock has refreshed it, unless it was cancelled.
                if self._age() >= _REFRESH_SECONDS:
                    await self._refresh()
        return self._beat

    async def read(self) -> Freshness:
        beat = await self.heartbeat()
        if beat is None:
            return Freshness(observed_at=None, stale=True)
        # In any other state the controller does not follow the cluster, even if its last contact is recent.
        stale = beat.state != _RUNNING or self._clock.now() - beat.observed_at > self._stale_after
        observed_at = beat.observed_at if beat.observed_at > _EARLIEST_CONTACT else None
        return Freshness(observed_at=observed_at, stale=stale)

    async def read_of(self, observed_at: datetime | None) -> Freshness:
        """Return the freshness of a record that was true at this time; None stands for one that never was."""
        status = await self.read()
        if observed_at is None or status.observed_at is None:
            return Freshness(observed_at=None, stale=True)
        stale = status.stale or self._clock.now() - observed_at > self._stale_after
        return Freshness(observed_at=min(observed_at, status.observed_at), stale=stale)

    def _age(self) -> float:
        """Return the seconds since the last refresh, successful or not."""
        return self._clock.monotonic() - self._refreshed_at

    async def _refresh(self) -> None:
        # The old heartbeat is kept if this fails, and becomes stale; the request's own query reports the error.
        with suppress(DatabaseUnavailable):
            self._beat = await heartbeats.read(self._db)
        # After a failure too, so that a database that does not answer is queried only once a second.
        self._refreshed_at = self._clock.monotonic()
