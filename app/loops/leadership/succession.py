"""When a controller without contact with its cluster gives the lease to another process.

holder         no contact for `limit` seconds, and another process offers ─▶ ends its term and releases the lease
candidate      the holder reports that it has no contact, and this process reaches the cluster ─▶ offers to take over
former holder  tries to acquire again when it reaches the cluster, or when no process has held the lease for a while

A process that cannot reach the cluster never offers. So a lease does not move between two of them, and a single
controller keeps it.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from app.base.clock import Clock
from app.db.installation import heartbeats, leases
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable, LeaseLost
from app.k8s.errors import KubeError
from app.loops.leadership.identity import WrongCluster

log = structlog.get_logger(__name__)

# The states of a heartbeat whose controller can do nothing on the cluster.
_WITHOUT_CONTACT: Final = ("Unreachable", "WrongCluster")


class LeaseGivenAway(LeaseLost):
    """This process has no contact with the cluster, and another one has."""


def gives_away(*, offered: bool, silent_for: float, limit: float) -> bool:
    """Return whether the holder gives the lease away. `silent_for` is its time without contact in seconds."""
    return offered and silent_for > limit


def may_offer(state: str | None) -> bool:
    """Return whether a candidate with contact offers to take over from a holder with this state in its heartbeat."""
    return state in _WITHOUT_CONTACT


def may_acquire(*, reaches: bool, free_for: float, ttl: float) -> bool:
    """Return whether a former holder tries to acquire the lease again.

    A lease that is free for longer than its duration `ttl` interests no other process, so a former holder without
    contact takes it again: its heartbeat reports the outage.
    """
    return reaches or free_for > ttl


class Succession:
    """The part of this process in it. `check` raises unless this process reaches its cluster. Times are seconds."""

    def __init__(
        self, db: Database, clock: Clock, *, check: Callable[[], Awaitable[None]], limit: float, ttl: float
    ) -> None:
        self._db = db
        self._clock = clock
        self._check = check
        self._limit = limit
        self._ttl = ttl
        self._contact_at = clock.monotonic()
        self._gave_away = False
        self._free_since: float | None = None

    def reached(self) -> None:
        """Note that this process has contact with its cluster."""
        self._contact_at = self._clock.monotonic()

    def answer(self, *, offered: bool) -> None:
        """Answer after a renewal of the lease whether another process may have it.

        Raises:
            LeaseGivenAway: it may.
        """
        silent_for = self._clock.monotonic() - self._contact_at
        if gives_away(offered=offered, silent_for=silent_for, limit=self._limit):
            self._gave_away = True
            self._free_since = None
            raise LeaseGivenAway(
                f"this process has had no contact with the cluster for {silent_for:.0f} s, and another one has"
            )

    async def may_acquire(self) -> bool:
        """Return whether this process tries to acquire the lease now."""
        if not self._gave_away:
            return True
        reaches = await self._reaches()
        if may_acquire(reaches=reaches, free_for=await self._free_for(), ttl=self._ttl):
            self._gave_away = False
        return not self._gave_away

    async def offer(self, holder: str) -> None:
        """Offer to take the lease over, if its holder has no contact and this process has."""
        try:
            beat = await heartbeats.read(self._db)
            if beat is not None and may_offer(beat.state) and await self._reaches():
                await leases.offer(self._db, leases.CONTROLLER, holder)
                log.info("lease.offered", state=beat.state)
        except DatabaseUnavailable as error:
            log.info("lease.not_offered", error=str(error))

    async def _reaches(self) -> bool:
        try:
            await self._check()
        except (KubeError, WrongCluster, DatabaseUnavailable) as error:
            log.info("cluster.not_reached", error=str(error))
            return False
        return True

    async def _free_for(self) -> float:
        """Return the seconds for which this process has seen no holder of the lease."""
        now = self._clock.monotonic()
        try:
            is_held = await leases.holding(self._db, leases.CONTROLLER) is not None
        except DatabaseUnavailable:
            is_held = True  # not known
        self._free_since = None if is_held else self._free_since or now
        return 0.0 if self._free_since is None else now - self._free_since
