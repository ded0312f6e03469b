from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.gateway import Gateway, running_gateway, until_followed
from tests.support.postgres import fresh_database


@pytest_asyncio.fixture
async def gateway(database_url: str) -> AsyncIterator[Gateway]:
    """Run a gateway that requires no token."""
    async with running_gateway(database_url) as running:
        yield running


@pytest_asyncio.fixture
async def closed_gateway(database_url: str) -> AsyncIterator[Gateway]:
    """Run a gateway that requires tokens."""
    async with running_gateway(database_url, closed=True) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateway(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """Run one gateway for all tests of a module, whose requests store nothing or use their own namespaces."""
    async with fresh_database(postgres_server_url, template=database_template) as url, running_gateway(url) as running:
        # A list says from which position to watch only once the gateway follows the feed.
        await until_followed(running)
        yield running
