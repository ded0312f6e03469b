"""A pool of connections to the database of the test."""

from collections.abc import AsyncIterator

import pytest

from app.db import leases
from app.db.engine import Database
from app.db.leases import Lease


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    database = await Database.open(database_url, pool_size=10)
    yield database
    await database.close()


@pytest.fixture
async def lease(db: Database) -> Lease:
    held = await leases.acquire(db, "controller", "test", ttl=60)
    assert held is not None
    return held
