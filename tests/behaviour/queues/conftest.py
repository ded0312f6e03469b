"""Queues of Kueue, where the cluster has it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.behaviour.client import Jobs
from tests.behaviour.queues.kueue import Queues, has_kueue, queues_of


@pytest_asyncio.fixture
async def queues(jobs: Jobs) -> AsyncIterator[Queues]:
    """A ClusterQueue with two CPUs, and the LocalQueue `team` of the test's namespace."""
    if not await has_kueue(jobs):
        pytest.skip("the cluster has no Kueue: run `make test-cluster`")
    async with queues_of(jobs, cpu=2) as made:
        yield made


@pytest_asyncio.fixture
async def wide_queues(jobs: Jobs) -> AsyncIterator[Queues]:
    """A ClusterQueue with four CPUs, whose namespace has a LocalQueue `default`, so that Kueue gates all pods."""
    if not await has_kueue(jobs):
        pytest.skip("the cluster has no Kueue: run `make test-cluster`")
    async with queues_of(jobs, cpu=4) as made:
        await made.add_local("default")
        yield made
