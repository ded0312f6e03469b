from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.gateway import Gateway, running_gateway
from tests.support.postgres import fresh_database


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateway(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """Run one gateway for all tests of a module, which use their own namespaces."""
    async with fresh_database(postgres_server_url, template=database_template) as url, running_gateway(url) as running:
        yield running
