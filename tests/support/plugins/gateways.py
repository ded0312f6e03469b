"""Gateways that run for a test or a module."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest_asyncio

from tests.support.gateways.gateway import Gateway, running_gateway
from tests.support.gateways.oidc_site import Site, ready_site
from tests.support.postgres import fresh_database


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateway(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """Run one gateway for all tests of a module, whose requests store nothing or use their own namespaces."""
    async with fresh_database(postgres_server_url, template=database_template) as url, running_gateway(url) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def own_namespace(shared_gateway: Gateway) -> Gateway:
    """Return the gateway of the module with a namespace that no other test uses."""
    await shared_gateway.lease()  # one lease for all tests
    return replace(shared_gateway, namespace=f"team-{secrets.token_hex(4)}")


@pytest_asyncio.fixture
async def site(database_url: str) -> AsyncIterator[Site]:
    """Run a gateway that has reached its OIDC issuer, whose user is in the group team."""
    async with ready_site(database_url) as running:
        yield running
