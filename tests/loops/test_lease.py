"""A candidate recognizes a lease that nobody renews by its own clock, whatever the clock of the database does."""

from typing_extensions import override

from app.base.clock import SystemClock
from app.db.installation import leases
from app.db.postgres.engine import Database
from app.loops.leadership.lease import Leadership

TTL = 600.0


class SkippingClock(SystemClock):
    skipped = 0.0

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self.skipped


async def test_a_candidate_takes_a_lease_that_stays_unrenewed_for_its_duration(db: Database) -> None:
    held = await leases.acquire(db, leases.CONTROLLER, "dead", TTL)
    assert held is not None
    clock = SkippingClock()
    candidate = Leadership(db, clock, ttl=1.0, renew_every=1.0)
    assert not await candidate.try_to_acquire()
    clock.skipped = TTL - 60
    assert not await candidate.try_to_acquire(), "it has not expired"
    clock.skipped = TTL + 1
    await leases.renew(db, held)
    assert not await candidate.try_to_acquire(), "the holder has renewed it"
    clock.skipped = 2 * (TTL + 1)
    assert await candidate.try_to_acquire()
    assert candidate.lease.epoch == held.epoch + 1
