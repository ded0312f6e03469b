"""What /readyz reports about a controller in another process."""

import asyncio
from datetime import UTC, datetime

import pytest

from app.db.installation import leases
from app.db.installation.heartbeats import Heartbeat
from app.db.postgres.engine import Database
from app.loops.leadership.controller_state import ControllerCondition
from app.running.readiness import PROOF_EVERY, STOPPING, Readiness, StoredController, stored_condition
from tests.k8s.support import ManualClock

TTL = 15.0


def beat(state: str, message: str = "") -> Heartbeat:
    return Heartbeat(observed_at=datetime(2026, 1, 1, tzinfo=UTC), epoch=1, state=state, message=message)


@pytest.mark.parametrize(
    ("stored", "unheld", "ok", "shown"),
    [
        (beat("Running"), 0.0, True, "Running"),
        (beat("Unreachable", "no answer"), 0.0, True, "Unreachable no answer"),
        (beat("WrongCluster", "another uid"), 0.0, False, "WrongCluster another uid"),
        (beat("Running"), TTL, True, "Running"),
        (beat("Running"), TTL + 1, False, "Waiting no process has held the controller's lease for 16 s"),
        (None, 0.0, True, "Waiting no controller has had contact with the cluster"),
    ],
)
def test_the_condition_of_a_stored_controller(stored: Heartbeat | None, unheld: float, *, ok: bool, shown: str) -> None:
    found = stored_condition(stored, unheld=unheld, ttl=TTL)
    assert (found.ok, str(found)) == (ok, shown)


async def test_a_process_that_stops_says_so_while_a_check_hangs(database_url: str) -> None:
    """A load balancer that waits for the answer would send requests until the process closes."""
    db, begun, stopping = await Database.open(database_url, pool_size=2), asyncio.Event(), asyncio.Event()

    async def hang() -> ControllerCondition:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    readiness = Readiness(db, ManualClock(), hang, stopping)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(readiness())
        await begun.wait()
        stopping.set()
    assert asked.result() == [STOPPING]
    assert await readiness() == [STOPPING]
    await db.close()


async def test_a_lease_that_nobody_holds_is_reported_after_its_duration(database_url: str) -> None:
    db, clock = await Database.open(database_url, pool_size=2), ManualClock()
    controller = StoredController(db, clock, TTL)
    assert (await controller.condition()).ok
    clock.seconds += TTL + PROOF_EVERY + 1
    assert not (await controller.condition()).ok
    assert await leases.acquire(db, leases.CONTROLLER, "another process", TTL)
    assert not (await controller.condition()).ok, "the result is cached"
    clock.seconds += PROOF_EVERY + 1
    assert (await controller.condition()).ok
    await db.close()
