from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.domain.kinds.registry import all_kinds
from tests.support.gateways.gateway import Gateway, running_gateway
from tests.support.kinds.every_kind import Collection


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


@pytest.fixture(params=sorted(all_kinds()))
def kind(request: pytest.FixtureRequest) -> str:
    """Return the name of each registered kind in turn."""
    return str(request.param)


@pytest.fixture
def of(kind: str, shared_gateway: Gateway) -> Collection:
    """Return the objects of each registered kind, in a namespace that no other test uses."""
    return Collection(shared_gateway, kind)
