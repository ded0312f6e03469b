"""How old what we show is: the controller's heartbeat, read at most once a second however many ask."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from app.clock import Clock
from app.db import heartbeats
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.db.heartbeats import Heartbeat

_REFRESH_SECONDS: Final = 1.0
_IN_TOUCH: Final = "Running"
_EPOCH: Final = datetime(1970, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """`observed_at` is the controller's last contact with the cluster; None when there never was one."""

    observed_at: datetime | None
    stale: bool
    state: str
    message: str


class FreshnessReader:
    """Keeps the last heartbeat. While it is being read again, others are answered with the previous one."""

    def __init__(self, db: Database, clock: Clock, stale_after: timedelta) -> None:
        self._db = db
        self._clock = clock
        self._stale_after = stale_after
        self._beat: Heartbeat | None = None
        self._refresh_at = 0.0

    async def read(self) -> Freshness:
        if self._clock.monotonic() >= self._refresh_at:
            self._refresh_at = self._clock.monotonic() + _REFRESH_SECONDS
            await self._refresh()
        beat = self._beat
        if beat is None:
            return Freshness(observed_at=None, stale=True, state="never", message="no controller has ever run")
        stale = beat.state != _IN_TOUCH or self._clock.now() - beat.observed_at > self._stale_after
        # A controller that has never reached a cluster says so with a moment at the beginning of time.
        observed_at = beat.observed_at if beat.observed_at > _EPOCH else None
        return Freshness(observed_at=observed_at, stale=stale, state=beat.state, message=beat.message)

    async def _refresh(self) -> None:
        try:
            self._beat = await heartbeats.read(self._db)
        except DatabaseUnavailable:
            # What is known stays true and grows old; the request itself will tell what is wrong with Postgres.
            return
