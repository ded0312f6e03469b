"""A lease has one holder at a time, each with its own epoch, and the fence rejects former holders."""

import asyncio

import pytest

from app.db.installation import heartbeats, leases
from app.db.installation.heartbeats import Heartbeat
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.db.postgres.errors import LeaseLost
from tests.db.factories import NOW, later
from tests.support.waiting import until


async def expire(db: Database) -> None:
    async with db.read() as connection:
        await connection.execute("UPDATE leases SET expires_at = clock_timestamp()")


async def test_one_of_many_candidates_acquires_the_lease(db: Database) -> None:
    async def candidate(number: int) -> Lease | None:
        return await leases.acquire(db, "controller", f"candidate-{number}", ttl=60)

    held = [lease for lease in await asyncio.gather(*map(candidate, range(10))) if lease]
    assert [lease.epoch for lease in held] == [1]
    assert await candidate(11) is None


async def test_a_lease_is_renewed_while_it_lasts_and_never_after(db: Database, lease: Lease) -> None:
    await leases.renew(db, lease)
    await expire(db)
    with pytest.raises(LeaseLost):
        await leases.renew(db, lease)
    with pytest.raises(LeaseLost):
        async with db.begin() as connection:
            await leases.fence(connection, lease)
    again = await leases.acquire(db, "controller", "test", ttl=60)
    assert again is not None
    assert again.epoch == lease.epoch + 1


async def test_a_takeover_waits_for_the_transaction_that_is_inside_the_fence(db: Database, lease: Lease) -> None:
    async with asyncio.TaskGroup() as tasks, db.begin() as connection:
        await leases.fence(connection, lease)
        await leases.renew(db, lease)  # does not wait for it
        await expire(db)
        takeover = tasks.create_task(leases.acquire(db, "controller", "another", ttl=60))
        await wait_until_blocked(db)
        assert not takeover.done()
    taken = takeover.result()
    assert taken is not None
    assert taken.epoch == lease.epoch + 1
    with pytest.raises(LeaseLost):
        async with db.begin() as connection:
            await leases.fence(connection, lease)


async def wait_until_blocked(db: Database) -> None:
    async with db.read() as connection:
        await until(lambda: connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"), what="a lock waits")


async def test_only_the_holder_can_release_the_lease(db: Database, lease: Lease) -> None:
    await leases.release(db, lease)
    second = await leases.acquire(db, "controller", "second", ttl=60)
    assert second is not None
    await leases.release(db, lease)
    await leases.renew(db, second)


async def test_only_the_holder_of_the_lease_writes_heartbeats(db: Database, lease: Lease) -> None:
    assert await heartbeats.read(db) is None
    await heartbeats.beat(db, lease, NOW, "ready")
    await heartbeats.beat(db, lease, later(1), "unreachable", "connection refused")
    expected = Heartbeat(observed_at=later(1), epoch=1, state="unreachable", message="connection refused")
    assert await heartbeats.read(db) == expected
    await expire(db)
    with pytest.raises(LeaseLost):
        await heartbeats.beat(db, lease, later(2), "ready")
    assert await heartbeats.read(db) == expected


async def test_a_lease_that_nobody_renews_is_taken_after_its_clock_was_set_back(db: Database, lease: Lease) -> None:
    seen = await leases.holding(db, lease.name)
    assert seen is not None
    assert seen.ttl == lease.ttl
    assert await leases.acquire(db, lease.name, "another", ttl=60) is None
    await leases.renew(db, lease)
    assert await leases.acquire(db, lease.name, "another", ttl=60, abandoned=seen.expires_at) is None
    renewed = await leases.holding(db, lease.name)
    assert renewed is not None
    taken = await leases.acquire(db, lease.name, "another", ttl=60, abandoned=renewed.expires_at)
    assert taken is not None
    assert taken.epoch == lease.epoch + 1
