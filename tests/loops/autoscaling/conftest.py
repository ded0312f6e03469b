"""The fixture of the tests of the autoscaler."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.loops.autoscaling.stage import Stage, a_stage


@pytest_asyncio.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with a_stage(database_url) as found:
        yield found
