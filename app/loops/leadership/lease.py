"""The lease in Postgres that makes one controller active. Its epoch fences every write.

The database's clock decides when the lease expires. This process's monotonic clock ensures that no request to the
cluster outlives the lease: the local deadline counts from before the renewal was sent, so it is never later than that
of the database.
"""

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import structlog

from app.base.cancellation import rounds
from app.base.clock import Clock
from app.base.faultpoints import FaultPoint, reach
from app.db.installation import leases
from app.db.installation.leases import Holding, Lease
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended, DatabaseUnavailable, LeaseLost
from app.db.postgres.timeouts import DatabaseTimeouts

log = structlog.get_logger(__name__)


def lease_timeouts(ttl: float) -> DatabaseTimeouts:
    """Return the timeouts of the connection on which a lease of `ttl` seconds is renewed.

    A renewal without an answer times out early enough for another one, on a new connection, before the lease expires.
    """
    share = ttl / 3
    return DatabaseTimeouts(
        connect=share, acquire=share, statement=share, lock=share, idle_in_transaction=share, silence=ttl / 10
    )


class Leadership:
    """The lease as this process holds it. `ttl` and `renew_every` are seconds.

    Only the clock determines whether the lease is held, never what a task has noticed.
    """

    def __init__(self, db: Database, clock: Clock, *, ttl: float, renew_every: float) -> None:
        self._db = db
        self._clock = clock
        self._ttl = ttl
        self._renew_every = renew_every
        self._deadline = 0.0
        self._lease: Lease | None = None
        # The lease of another process, and when this process saw it first.
        self._observed: tuple[Holding | None, float] = None, 0.0
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.answered_at = clock.monotonic()  # when the database last answered about the lease, or this began

    @property
    def lease(self) -> Lease:
        """Return the lease, whose epoch fences writes.

        Raises:
            LeaseLost: it is not held, or the local deadline has passed.
        """
        if self._lease is None or self._clock.monotonic() >= self._deadline:
            raise LeaseLost("the controller's lease is not held")
        return self._lease

    @property
    def remaining(self) -> float | None:
        """Seconds until the lease expires, negative after that. None before `acquire` and after `release`."""
        return None if self._lease is None else self._deadline - self._clock.monotonic()

    @property
    def epoch(self) -> int:
        """The epoch of the lease, or 0 if it is not held."""
        return self._lease.epoch if self._lease is not None and (self.remaining or 0.0) > 0 else 0

    def guard(self, timeout: float) -> None:
        """Check that a request to the cluster of at most `timeout` seconds may start.

        Raises:
            LeaseLost: the lease could expire before the request ends.
        """
        if self._lease is None or self._clock.monotonic() + timeout >= self._deadline:
            raise LeaseLost(f"the lease does not outlive a request of {timeout:g} s")

    async def acquire(self) -> None:
        """Wait until this process holds the lease.

        Raises:
            DatabaseUnavailable: the database does not answer, or refuses.
        """
        for _ in rounds():
            with suppress(DatabaseContended):
                if await self._acquire():
                    return
            await asyncio.sleep(self._renew_every)

    async def try_to_acquire(self) -> bool:
        """Try once to acquire the lease, and return whether this process holds it."""
        try:
            return await self._acquire()
        except DatabaseUnavailable as error:
            log.warning("lease.unavailable", error=str(error))
            return False

    async def _acquire(self) -> bool:
        before = self._clock.monotonic()  # before the request: the lease begins at the earliest now
        abandoned = self._find_abandoned(before)
        lease = await leases.acquire(self._db, leases.CONTROLLER, self.holder, self._ttl, abandoned=abandoned)
        held = None if lease else await leases.holding(self._db, leases.CONTROLLER)
        self.answered_at = self._clock.monotonic()
        if lease is None:
            if self._observed[0] != held:
                self._observed = held, self.answered_at
            return False
        self._lease, self._deadline = lease, before + self._ttl
        reach(FaultPoint.LEASE_ACQUIRED)
        log.info("lease.acquired", epoch=lease.epoch, holder=self.holder)
        return True

    def _find_abandoned(self, now: float) -> datetime | None:
        """Return the expiry of a lease that nobody has renewed for its duration, by the clock of this process.

        After a step back of the database's clock, the lease of a dead process would expire only much later.
        """
        held, since = self._observed
        if held is None or held.ttl is None or now - since <= held.ttl:
            return None
        return held.expires_at

    async def outrank(self, epoch: int) -> None:
        """Continue with an epoch above this one. Nothing renews the lease at the same time.

        Raises:
            LeaseLost: it is not held.
        """
        self._lease = await leases.outrank(self._db, self.lease, epoch)

    async def keep(self, answer: Callable[[bool], None] = lambda _: None) -> None:
        """Renew the lease until it is lost. `answer` gets whether another process offers to take it over.

        Raises:
            LeaseLost: another process has it, or it was not renewed in time.
        """
        pause = self._renew_every
        for _ in rounds():
            await asyncio.sleep(pause)
            # After a failure only the time until the deadline is left, so the next try follows sooner.
            renewed = await self._renew(answer)
            pause = self._renew_every if renewed else self._renew_every / 5

    async def _renew(self, answer: Callable[[bool], None]) -> bool:
        """Try to renew the lease once, at most until its deadline. Returns whether that worked."""
        before = self._clock.monotonic()
        try:
            # A connection that hangs must not keep this task beyond the deadline.
            async with asyncio.timeout(self._deadline - before):
                offered = await leases.renew(self._db, self.lease)
        except (DatabaseUnavailable, TimeoutError) as error:
            log.warning("lease.renewal_failed", error=str(error))
            self.guard(0.0)  # a failed renewal is harmless until the deadline
            return False
        self.answered_at = self._clock.monotonic()
        self._deadline = before + self._ttl
        reach(FaultPoint.LEASE_RENEWED)
        answer(offered)
        return True

    async def release(self) -> None:
        """Give up the lease, so that the next holder does not have to wait for its expiry."""
        remaining, lease = self.remaining, self._lease
        # Before the request: as soon as the database has released the lease, another process may act.
        self._lease = None
        if lease is None or remaining is None or remaining <= 0:
            return
        try:
            async with asyncio.timeout(remaining):
                await leases.release(self._db, lease)
        # Harmless: without an answer, the lease expires by itself.
        except (DatabaseUnavailable, TimeoutError) as error:
            log.warning("lease.release_failed", error=str(error))
