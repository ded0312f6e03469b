"""A gateway process with few file descriptors and short time limits, and a well-behaved client."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.attack.victim import Victim, running_victim
from tests.support.postgres import fresh_database


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def victim(
    postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Victim]:
    directory: Path = tmp_path_factory.mktemp("victim")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_victim(url, directory) as running,
    ):
        yield running
