"""What tests of the database need beside it."""

import pytest_asyncio

from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database


@pytest_asyncio.fixture
async def lease(db: Database) -> Lease:
    """Acquire the lease of the controller."""
    held = await leases.acquire(db, leases.CONTROLLER, "a test", ttl=600)
    assert held is not None
    return held
