"""Keeps the clock of a process at the time of the installation, and reports clocks that are wrong.

every process            reading of the database ─▶ shift of the own count, if the difference is plausible
holder of the lease      reading ─▶ correction of the stored time, if the database's clock has made a step
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from app.base.cancellation import rounds
from app.base.clock import InstallationClock
from app.base.instruments import Values, expose
from app.db.installation import leases, timekeeping
from app.db.installation.leases import Lease
from app.db.postgres import metrics
from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.timekeeping import (
    UNNOTICED,
    Counted,
    Reading,
    correction,
    first_time,
    in_words,
    shift_of_follower,
)

log = structlog.get_logger(__name__)

# Seconds between two readings. After a step of the database's clock, the holder of the lease loses at most this time.
PERIOD: Final = 5.0
# Seconds by which the clock of a host may differ from that of the database: NTP keeps hosts within milliseconds.
HOST_TOLERANCE: Final = 2.0


class Timekeeper:
    """Shifts the clock of this process. `db` is the pool of the loop that follows the time of the installation."""

    def __init__(self, db: Database, clock: InstallationClock) -> None:
        self._db = db
        self._clock = clock
        self._leads = False
        self._agreed_at = clock.monotonic()
        self._differs_since: float | None = None
        self._ahead = 0.0
        self._host_ahead = 0.0

    async def start(self) -> None:
        """Set the clock to the time of the installation.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        async with self._db.read() as connection:
            reading, counted = await self._read(connection)
        self._shift((first_time(reading) - counted.middle) / timedelta(seconds=1))
        self._compare(reading)

    @property
    def fault(self) -> str:
        """Which clock is wrong, as a message for operators; empty if none is."""
        found = []
        if abs(self._ahead) > UNNOTICED:
            found.append(
                f"the clock of the database is {in_words(-self._ahead)} the time of this installation, "
                "which does not follow steps and approaches it by 1 %"
            )
        if abs(self._host_ahead) > HOST_TOLERANCE:
            found.append(
                f"the clock of host {socket.gethostname()} is {in_words(self._host_ahead)} that of the database: "
                "connections with TLS need correct clocks"
            )
        return "; ".join(found)

    async def run(self) -> None:
        """Follow the time of the installation until cancelled."""
        with expose({metrics.CLOCK_DIFFERENCE: self._differences}):
            await self._repeat(self.follow)

    def _differences(self) -> Values:
        return {("database",): -self._ahead, ("host",): self._host_ahead - self._ahead}

    async def follow(self) -> None:
        """Compare the clock once, unless this process holds the lease: `lead` does it then."""
        async with self._db.read() as connection:
            reading, counted = await self._read(connection)
        if self._leads:
            return
        now = self._clock.monotonic()
        differs_for = 0.0 if self._differs_since is None else now - self._differs_since
        shift = shift_of_follower(reading, counted, differs_for=differs_for)
        if shift is None:
            self._differs_since = now - differs_for
        else:
            self._shift(shift)
            if abs(shift) > UNNOTICED:
                _report("process", step=shift, ahead=0.0)
        self._compare(reading)

    async def lead(self, db: Database, lease: Callable[[], Lease]) -> None:
        """Keep the stored time until cancelled. `lease` returns the lease that this process holds.

        Raises:
            LeaseLost: this process does not hold the lease.
        """
        self._leads = True
        try:
            await self._repeat(lambda: self.settle(db, lease()))
        finally:
            self._leads = False

    async def settle(self, db: Database, lease: Lease) -> None:
        """Compare the clock once as the holder of the lease. No deadline may be judged under a lease before this.

        Raises:
            LeaseLost: this process does not hold the lease.
        """
        async with db.begin() as connection:
            await leases.fence(connection, lease)
            reading, counted = await self._read(connection)
            made = correction(reading, counted)
            self._compare(reading)
            self._ahead = made.ahead
            await timekeeping.store(connection, made, self.fault)
        # After the commit: a correction that was not stored is found again by the next reading.
        self._shift(made.shift)
        if abs(made.step) > UNNOTICED:
            _report("database", step=made.step, ahead=-made.ahead)
        elif abs(made.shift) > UNNOTICED:
            _report("process", step=made.shift, ahead=0.0)

    async def _repeat(self, action: Callable[[], Awaitable[None]]) -> None:
        for _ in rounds():
            await asyncio.sleep(PERIOD)
            try:
                await action()
            except DatabaseUnavailable as error:
                log.info("clock.not_compared", error=str(error))

    async def _read(self, connection: Connection) -> tuple[Reading, Counted]:
        before = self._clock.now()
        reading = await timekeeping.read(connection)
        since = self._clock.monotonic() - self._agreed_at
        return reading, Counted(before=before, after=self._clock.now(), since=since)

    def _shift(self, seconds: float) -> None:
        self._clock.shift(seconds)
        self._agreed_at = self._clock.monotonic()
        self._differs_since = None

    def _compare(self, reading: Reading) -> None:
        """Compare the clock of this host with that of the database, and log a difference that has changed."""
        ahead = (self._clock.host() - reading.at) / timedelta(seconds=1)
        if abs(ahead - self._host_ahead) > HOST_TOLERANCE:
            _report("host", step=ahead - self._host_ahead, ahead=ahead)
            self._host_ahead = ahead
        elif abs(ahead) <= HOST_TOLERANCE:
            self._host_ahead = ahead
        self._ahead = reading.ahead


def _report(clock: str, *, step: float, ahead: float) -> None:
    metrics.CLOCK_STEPS.labels(clock).inc()
    log.warning("clock.stepped", clock=clock, seconds=round(step, 3), ahead=round(ahead, 3))
