"""Tests may use the same names, and a test may be repeated in the same session, as CI does with one that has failed."""

import pytest

from tests.dashboard.conftest import ClosedGateway
from tests.dashboard.sets import create, create_set
from tests.e2e.user import User, job

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def use_names(user: User) -> None:
    assert (await user.read("?pageSize=1"))["items"] == []
    await user.submit(job("used", "sleep 600"))
    await create_set(user, "used")
    spec = {"type": "clear", "sampleSetRef": {"name": "used"}}
    await create(user, "samplejobs", "SampleJob", "used", spec)
    await user.until("used", "Running")


@pytest.mark.parametrize("run", ["first", "second"])
async def test_a_test_begins_with_an_empty_gateway(user: User, run: str) -> None:  # noqa: ARG001 - makes two tests
    await use_names(user)


@pytest.mark.parametrize("run", ["first", "second"])
async def test_a_gateway_with_tokens_begins_with_an_empty_cluster(
    closed_gateway: ClosedGateway,
    run: str,  # noqa: ARG001
) -> None:
    await use_names(closed_gateway.user)
