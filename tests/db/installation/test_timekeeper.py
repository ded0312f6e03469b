"""The clocks of processes keep the time of the installation while the clock of the database or of a host steps."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from typing_extensions import override

from app.base.clock import InstallationClock
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.installation.system import StoredSystem
from app.db.installation.system import read as read_system
from app.db.installation.timekeeper import HOST_TOLERANCE, Timekeeper
from app.db.postgres.engine import Database
from app.db.postgres.errors import LeaseLost
from app.domain.timekeeping import PATIENCE
from tests.support.machine.stepped_clocks import install, make_steppable, step_database, step_host

HOUR = 3600.0
NEAR = 60.0  # seconds that a test may take on a busy machine


class SkippingClock(InstallationClock):
    """Counts what a test has skipped, and knows how far it is from the time that passes on this machine."""

    def __init__(self) -> None:
        self.skipped = 0.0
        super().__init__()
        self._true_origin = self._origin

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self.skipped

    @property
    def error(self) -> float:
        """Seconds by which this clock is ahead of the time that it had counted without shifts."""
        return (self._origin - self._true_origin) / timedelta(seconds=1)


@pytest_asyncio.fixture
async def steppable(database_url: str) -> AsyncIterator[Database]:
    plain = await Database.open(database_url, pool_size=1)
    async with plain.read() as connection:
        await make_steppable(connection)
    await plain.close()
    db = await Database.open(database_url, pool_size=4)
    yield db
    await db.close()


async def step(db: Database, seconds: float) -> None:
    async with db.read() as connection:
        await step_database(connection, seconds)


async def acquired(db: Database) -> Lease:
    lease = await leases.acquire(db, leases.CONTROLLER, "test", ttl=1e6)
    assert lease is not None
    return lease


async def a_timekeeper(db: Database) -> tuple[Timekeeper, SkippingClock]:
    clock = SkippingClock()
    keeper = Timekeeper(db, clock)
    await keeper.start()
    return keeper, clock


async def stored(db: Database) -> StoredSystem:
    return await read_system(db, leases.CONTROLLER)


@pytest.mark.parametrize("seconds", [HOUR, 600, -600, -HOUR])
async def test_no_process_follows_a_step_of_the_databases_clock(steppable: Database, seconds: float) -> None:
    lease = await acquired(steppable)
    (leader, leading), (follower, following) = await a_timekeeper(steppable), await a_timekeeper(steppable)
    await leader.settle(steppable, lease)
    await step(steppable, seconds)
    await follower.follow()
    assert abs(following.error) < HOST_TOLERANCE
    await leader.settle(steppable, lease)
    await follower.follow()
    assert abs(leading.error) < NEAR
    assert abs(following.now() - leading.now()) < timedelta(seconds=HOST_TOLERANCE)
    found = await stored(steppable)
    assert found.clock_ahead == pytest.approx(-seconds, abs=NEAR)
    assert "the clock of the database is" in found.clock_fault
    # A process that starts later, and one that takes the lease over, count the same time.
    newcomer, starting = await a_timekeeper(steppable)
    await newcomer.settle(steppable, await taken_over(steppable, lease))
    assert abs(starting.now() - leading.now()) < timedelta(seconds=HOST_TOLERANCE)
    assert (await stored(steppable)).clock_ahead == pytest.approx(-seconds, abs=NEAR)


async def taken_over(db: Database, lease: Lease) -> Lease:
    await leases.release(db, lease)
    return await acquired(db)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
async def test_a_standby_that_takes_over_at_the_step_keeps_the_time(steppable: Database, seconds: float) -> None:
    """A step forward ends the lease, so another process may take it before its holder has noticed the step."""
    lease = await acquired(steppable)
    (leader, _), (standby, waiting) = await a_timekeeper(steppable), await a_timekeeper(steppable)
    await leader.settle(steppable, lease)
    await step(steppable, seconds)
    await standby.follow()
    await standby.settle(steppable, await taken_over(steppable, lease))
    assert abs(waiting.error) < NEAR
    with pytest.raises(LeaseLost):
        await leader.settle(steppable, lease)


async def test_time_does_not_go_back_behind_what_is_recorded_while_no_process_runs(steppable: Database) -> None:
    lease = await acquired(steppable)
    leader, leading = await a_timekeeper(steppable)
    await leader.settle(steppable, lease)
    before = leading.now()
    await step(steppable, -HOUR)
    later, starting = await a_timekeeper(steppable)
    assert starting.now() >= before - timedelta(seconds=HOST_TOLERANCE)
    await later.settle(steppable, await taken_over(steppable, lease))
    assert (await stored(steppable)).clock_ahead == pytest.approx(HOUR, abs=NEAR)


@pytest.mark.parametrize("skipped", [HOUR, -HOUR])
async def test_a_process_whose_monotonic_clock_is_wrong_returns_to_the_time_of_the_installation(
    steppable: Database, skipped: float
) -> None:
    """The monotonic clock of a suspended machine stands still."""
    lease = await acquired(steppable)
    (leader, leading), (follower, following) = await a_timekeeper(steppable), await a_timekeeper(steppable)
    await leader.settle(steppable, lease)
    following.skipped += skipped
    await follower.follow()
    assert abs(following.now() - leading.now()) > timedelta(seconds=HOUR - NEAR)  # it waits for the holder
    following.skipped += PATIENCE + 1
    await follower.follow()
    assert abs(following.now() - leading.now()) < timedelta(seconds=HOST_TOLERANCE)


async def test_a_step_of_the_hosts_clock_is_reported_and_moves_nothing(
    steppable: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "step"
    step_host(file, 0)
    install(file, monkeypatch)
    lease = await acquired(steppable)
    leader, leading = await a_timekeeper(steppable)
    await leader.settle(steppable, lease)
    assert (leader.fault, (await stored(steppable)).clock_fault) == ("", "")
    step_host(file, HOUR)
    await leader.settle(steppable, lease)
    assert abs(leading.error) < HOST_TOLERANCE
    assert "3600 s ahead of that of the database" in leader.fault
    assert (await stored(steppable)).clock_fault == leader.fault
    step_host(file, 0)
    await leader.settle(steppable, lease)
    assert (leader.fault, (await stored(steppable)).clock_fault) == ("", "")


async def test_a_process_whose_host_has_a_wrong_clock_starts_with_that_of_the_database(
    steppable: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "step"
    step_host(file, -HOUR)
    install(file, monkeypatch)
    keeper, clock = await a_timekeeper(steppable)
    assert clock.error == pytest.approx(HOUR, abs=NEAR)
    assert "3600 s behind that of the database" in keeper.fault
