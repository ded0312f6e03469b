"""Two installations on one cluster and in one namespace leave the objects of the other one unchanged."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.behaviour.client import Jobs
from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import job, task

PORT = {"ports": [{"port": 2222}]}


@pytest_asyncio.fixture
async def others(other_gateway: OtherGateway) -> AsyncIterator[Jobs]:
    """A client of the other installation, in the same namespace."""
    async with other_gateway() as client:
        yield client


async def test_each_sees_touches_and_removes_its_own_alone(jobs: Jobs, others: Jobs) -> None:
    mine = (await jobs.submit(job("mine", task(replicas=2), service=PORT)))["uid"]
    theirs = (await others.submit(job("theirs", task(replicas=2), service=PORT)))["uid"]
    await jobs.until("mine", "Running")
    await others.until("theirs", "Running")
    before = {pod["metadata"]["uid"] for pod in await others.of_job("pods", theirs)}
    labels = {
        uid: {pod["metadata"]["labels"]["jobgate.dev/installation"] for pod in await jobs.of_job("pods", uid)}
        for uid in (mine, theirs)
    }
    assert len(labels[mine]) == len(labels[theirs]) == 1
    assert labels[mine] != labels[theirs]
    assert (await jobs.http.get(f"/api/v1/jobs/{theirs}")).status_code == 404
    await jobs.delete("mine")
    for kind in ("pods", "services", "configmaps"):
        await jobs.until_objects(kind, mine, lambda found: not found)
    assert {pod["metadata"]["uid"] for pod in await others.of_job("pods", theirs)} == before
    assert len(await others.names("services", theirs)) == 2
    assert (await others.status("theirs"))["phase"] == "Running"
    assert {item["attempt"] for item in (await others.replicas("theirs")).values()} == {1}


async def test_the_others_pod_of_the_same_name_is_a_conflict_not_a_leftover(jobs: Jobs, others: Jobs) -> None:
    await others.submit(job("same"))
    await others.until("same", "Running")
    uid = (await others.pod("same-worker-0"))["metadata"]["uid"]
    await jobs.submit(job("same"))
    status = await jobs.until("same", "Failed")
    assert status["reason"] == "NameConflict"
    await jobs.delete("same")
    assert (await others.pod("same-worker-0"))["metadata"]["uid"] == uid
    assert (await others.status("same"))["phase"] == "Running"
