"""A controller gives its lease away only if it has no contact and another process has; without one, it keeps it."""

from collections.abc import Callable

import pytest
from typing_extensions import override

from app.base.clock import SystemClock
from app.db.installation import heartbeats, leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.k8s.errors import Unreachable
from app.loops.leadership.identity import WrongCluster
from app.loops.leadership.succession import LeaseGivenAway, Succession, gives_away, may_acquire, may_offer
from tests.db.factories import NOW

LIMIT = 60.0
TTL = 600.0


@pytest.mark.parametrize(
    ("offered", "silent_for", "expected"),
    [
        (False, 0, False),
        (True, 0, False),
        (True, 60, False),
        (True, 60.1, True),
        (False, 1e6, False),  # nobody can do better
    ],
)
def test_the_holder_gives_the_lease_away_only_without_contact_and_to_a_process_with_contact(
    offered: bool,  # noqa: FBT001 - a table
    silent_for: float,
    expected: bool,  # noqa: FBT001
) -> None:
    assert gives_away(offered=offered, silent_for=silent_for, limit=LIMIT) is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, False),
        ("Waiting", False),
        ("Syncing", False),
        ("Running", False),
        ("Unreachable", True),
        ("WrongCluster", True),
    ],
)
def test_a_candidate_offers_only_to_a_holder_that_reports_no_contact(
    state: str | None,
    expected: bool,  # noqa: FBT001 - a table
) -> None:
    assert may_offer(state) is expected


@pytest.mark.parametrize(
    ("reaches", "free_for", "expected"),
    [
        (False, 0, False),
        (False, TTL, False),
        (False, TTL + 1, True),  # nobody wants it
        (True, 0, True),
    ],
)
def test_a_former_holder_waits_until_it_has_contact_or_nobody_wants_the_lease(
    reaches: bool,  # noqa: FBT001 - a table
    free_for: float,
    expected: bool,  # noqa: FBT001
) -> None:
    assert may_acquire(reaches=reaches, free_for=free_for, ttl=TTL) is expected


class SkippingClock(SystemClock):
    skipped = 0.0

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self.skipped


class Process:
    """One of two processes: what it reaches, and its part in the succession."""

    def __init__(self, db: Database) -> None:
        self.error: Exception | None = Unreachable("no answer")
        self.clock = SkippingClock()
        self.succession = Succession(db, self.clock, check=self._check, limit=LIMIT, ttl=TTL)

    async def _check(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture
def process(db: Database) -> Callable[[], Process]:
    return lambda: Process(db)


@pytest.mark.parametrize("error", [Unreachable("no answer"), WrongCluster("another cluster")], ids=["silent", "wrong"])
async def test_two_processes_without_contact_do_not_pass_the_lease_to_each_other(
    db: Database, lease: Lease, process: Callable[[], Process], error: Exception
) -> None:
    holder, standby = process(), process()
    holder.clock.skipped, standby.error = LIMIT + 1, error
    await heartbeats.beat(db, lease, NOW, "Unreachable", "no answer")
    await standby.succession.offer("standby")
    holder.succession.answer(offered=await leases.renew(db, lease))


async def test_the_lease_passes_to_the_process_with_contact_and_back_when_that_has_lost_it(
    db: Database, lease: Lease, process: Callable[[], Process]
) -> None:
    holder, standby = process(), process()
    standby.error = None
    await standby.succession.offer("standby")
    assert not await leases.renew(db, lease), "the holder reports contact"
    await heartbeats.beat(db, lease, NOW, "Unreachable", "no answer")
    await standby.succession.offer("standby")
    assert await leases.renew(db, lease)
    holder.succession.answer(offered=True)  # its outage is short so far
    holder.clock.skipped = LIMIT + 1
    with pytest.raises(LeaseGivenAway):
        holder.succession.answer(offered=True)
    await leases.release(db, lease)
    assert not await holder.succession.may_acquire()
    assert await standby.succession.may_acquire()
    taken = await leases.acquire(db, lease.name, "standby", TTL)
    assert taken is not None
    assert not await leases.renew(db, taken), "the offer of the former epoch is gone"
    assert not await holder.succession.may_acquire()
    holder.error = None
    assert await holder.succession.may_acquire()
    await heartbeats.beat(db, taken, NOW, "Unreachable", "no answer")
    await holder.succession.offer("holder")
    assert await leases.renew(db, taken)


async def test_a_lease_that_nobody_wants_returns_to_the_process_without_contact(
    db: Database, lease: Lease, process: Callable[[], Process]
) -> None:
    holder = process()
    holder.clock.skipped = LIMIT + 1
    with pytest.raises(LeaseGivenAway):
        holder.succession.answer(offered=True)
    assert not await holder.succession.may_acquire()
    await leases.release(db, lease)
    assert not await holder.succession.may_acquire()
    holder.clock.skipped += TTL + 1
    assert await holder.succession.may_acquire()
