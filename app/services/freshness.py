"""How old the recorded status is, from the heartbeat of the controller."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from app.clock import Clock
from app.db import heartbeats
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.db.heartbeats import Heartbeat

_REFRESH_SECONDS: Final = 1.0  # every answer needs the heartbeat; one query per second serves them all
_RUNNING: Final = "Running"
# A heartbeat from before this time is one of a controller that has never reached the cluster.
_EARLIEST_CONTACT: Final = datetime(1970, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """`observed_at` is the time of the controller's last contact with the cluster, or None if there was none."""

    observed_at: datetime | None
    stale: bool
    state: str
    message: str


class FreshnessReader:
    """Caches the heartbeat. While one request refreshes it, other requests get the previous one.

    `stale_after` is the age of the last contact from which status is stale.
    """

    def __init__(self, db: Database, clock: Clock, stale_after: timedelta) -> None:
        self._db = db
        self._clock = clock
        self._stale_after = stale_after
        self._beat: Heartbeat | None = None
        self._refresh_at = 0.0

    async def read(self) -> Freshness:
        if self._clock.monotonic() >= self._refresh_at:
            # Before the read, so that other requests do not wait for it, and a slow database is queried only once a
            # second.
            self._refresh_at = self._clock.monotonic() + _REFRESH_SECONDS
            await self._refresh()
        beat = self._beat
        if beat is None:
            return Freshness(observed_at=None, stale=True, state="never", message="no controller has ever run")
        # In any other state the controller does not follow the cluster, even if its last contact is recent.
        stale = beat.state != _RUNNING or self._clock.now() - beat.observed_at > self._stale_after
        observed_at = beat.observed_at if beat.observed_at > _EARLIEST_CONTACT else None
        return Freshness(observed_at=observed_at, stale=stale, state=beat.state, message=beat.message)

    async def _refresh(self) -> None:
        try:
            self._beat = await heartbeats.read(self._db)
        except DatabaseUnavailable:
            return  # keep the old heartbeat, which becomes stale; the request's own query reports the error
