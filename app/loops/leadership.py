"""One active controller: a lease in Postgres, renewed while it works, whose epoch fences every write.

Time is the database's for expiry and this process's monotonic clock for the promise that no cluster request outlives
the lease: the local deadline counts from before the renewal was sent, so it is never later than the database's.
"""

import asyncio
import os
import socket
import uuid

import structlog

from app.clock import Clock
from app.db import leases
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable, LeaseLost
from app.db.leases import Lease
from app.faultpoints import FaultPoint, reached
from app.loops.metrics import EPOCH

log = structlog.get_logger()

LEASE_NAME = "controller"


class Leadership:
    """The lease as this process holds it. `ttl` and `renew_every` are seconds."""

    def __init__(self, db: Database, clock: Clock, *, ttl: float, renew_every: float) -> None:
        self._db = db
        self._clock = clock
        self._ttl = ttl
        self._renew_every = renew_every
        self._deadline = 0.0
        self._lease: Lease | None = None
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    @property
    def lease(self) -> Lease:
        """The lease that fences writes.

        Raises:
            LeaseLost: it is not held, or the local deadline has passed.
        """
        if self._lease is None or self._clock.monotonic() >= self._deadline:
            raise LeaseLost("the controller's lease is not held")
        return self._lease

    def guard(self, timeout: float) -> None:
        """Allow a cluster request of at most `timeout` seconds to start.

        Raises:
            LeaseLost: the lease could run out while the request is under way.
        """
        if self._lease is None or self._clock.monotonic() + timeout >= self._deadline:
            raise LeaseLost(f"the lease does not outlive a request of {timeout:g} s")

    async def acquire(self) -> Lease:
        """Wait until the lease is ours."""
        while True:
            before = self._clock.monotonic()
            try:
                lease = await leases.acquire(self._db, LEASE_NAME, self.holder, self._ttl)
            except DatabaseUnavailable as error:
                log.warning("lease.unavailable", error=str(error))
                lease = None
            if lease is not None:
                self._lease, self._deadline = lease, before + self._ttl
                EPOCH.set(lease.epoch)
                reached(FaultPoint.LEASE_ACQUIRED)
                log.info("lease.acquired", epoch=lease.epoch, holder=self.holder)
                return lease
            await asyncio.sleep(self._renew_every)

    async def keep(self) -> None:
        """Renew until the lease is lost.

        Raises:
            LeaseLost: somebody else has it, or it could not be renewed in time.
        """
        while True:
            await asyncio.sleep(self._renew_every)
            before = self._clock.monotonic()
            try:
                await leases.renew(self._db, self.lease)
            except DatabaseUnavailable as error:
                log.warning("lease.renewal_failed", error=str(error))
                self.guard(0.0)
                continue
            self._deadline = before + self._ttl
            reached(FaultPoint.LEASE_RENEWED)

    async def release(self) -> None:
        """Give the lease up, so that a successor need not wait for its expiry."""
        lease, self._lease = self._lease, None
        EPOCH.set(0)
        if lease is None:
            return
        try:
            await leases.release(self._db, lease)
        except DatabaseUnavailable as error:
            log.warning("lease.release_failed", error=str(error))
