"""What a recovery changes in the database, it changes only with the lease."""

import pytest

from app.base.clock import SystemClock
from app.db import recovery
from app.db.feed import entries
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.db.postgres.errors import LeaseLost
from tests.db.factories import new_job, stored, submitted


async def test_without_the_lease_the_feed_and_the_versions_stay(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job("job"))
    await entries.publish(db)
    before, version = await entries.bounds(db), (await stored(db, uid)).version
    await leases.release(db, lease)
    with pytest.raises(LeaseLost):
        await recovery.continue_after(db, lease, 100, "cluster", SystemClock().now())
    with pytest.raises(LeaseLost):
        await recovery.skip_versions(db, lease)
    assert await entries.bounds(db) == before
    assert (await stored(db, uid)).version == version
