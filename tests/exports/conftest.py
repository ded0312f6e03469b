from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from app.db.postgres.engine import Database
from tests.api.conftest import gateway
from tests.exports.ended_jobs import ended_job, exported
from tests.support.gateways.gateway import running_gateway
from tests.support.postgres import fresh_database

__all__ = ["gateway"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def export(
    postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Path]:
    """A folder with an export of the jobs one and two, in one segment."""
    folder = tmp_path_factory.mktemp("export")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url) as running,
    ):
        for number, name in enumerate(("one", "two")):
            await ended_job(running, name, minutes=number)
        await exported(running.db, folder)
    yield folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def empty(postgres_server_url: str, database_template: str) -> AsyncIterator[Database]:
    """A database without jobs, for tests that store none."""
    async with fresh_database(postgres_server_url, template=database_template) as url:
        db = await Database.open(url, pool_size=2)
        yield db
        await db.close()
