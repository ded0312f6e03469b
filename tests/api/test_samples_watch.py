"""Server-sent events of SampleSets and SampleJobs: each stream has its own resource, and can be resumed."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from tests.api.test_watch import Event, stream, take
from tests.support.gateway import Gateway
from tests.support.samples import JOBS, RESOURCES, SETS, conclude, path, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORDS = {SETS: "sampleset", JOBS: "samplejob"}


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid4().hex[:12]}"


async def until(source: AsyncIterator[Event], what: str) -> Event:
    async with asyncio.timeout(60):
        async for event in source:
            if event.name != "ready" and event.data["type"] == what:
                return event
    raise AssertionError(f"no {what}")


async def test_each_stream_has_its_own(hostile: Gateway, namespace: str) -> None:
    mine = f"watch?namespace={namespace}"
    async with (
        stream(hostile, f"/api/v1/jobs/{mine}") as of_jobs,
        stream(hostile, f"/api/v1/samplesets/{mine}") as of_sets,
        stream(hostile, f"/api/v1/samplejobs/{mine}") as of_sample_jobs,
    ):
        for source in (of_jobs, of_sets, of_sample_jobs):
            assert (await take(source, 1))[0].name == "ready"
        await submit(hostile, JOBS, namespace=f"{namespace}-other")
        await submit(hostile, SETS, namespace=namespace)
        await submit(hostile, JOBS, namespace=namespace)
        await hostile.submit("job", namespace)
        (event,) = await take(of_jobs, 1)
        assert (event.name, event.data["object"]["name"]) == ("job", "job")
        (event,) = await take(of_sets, 1)
        assert (event.name, event.data["object"]["kind"]) == ("sampleset", "SampleSet")
        (event,) = await take(of_sample_jobs, 1)
        assert (event.name, event.data["object"]["namespace"]) == ("samplejob", namespace)


@pytest.mark.parametrize("resource", RESOURCES)
async def test_one_from_its_submission_to_its_end(resource: str, hostile: Gateway, namespace: str) -> None:
    listed = await hostile.client.get(path(resource, namespace=namespace))
    created = await submit(hostile, resource, namespace=namespace)
    await submit(hostile, resource, "noise", namespace=namespace)
    url, name = path(resource, "one", "watch", namespace=namespace), WORDS[resource]
    async with stream(hostile, url, listed.headers["jobgate-feed-position"]) as source:
        await conclude(hostile, created["uid"], reason="ErrorSecretNotExist", message="secret a is not exist")
        first, status = await until(source, "created"), await until(source, "status")
    for event in (first, status):
        assert (event.name, event.data["object"]["name"]) == (name, "one")
    await hostile.client.delete(path(resource, "one", namespace=namespace))
    if resource == SETS:
        await conclude(hostile, created["uid"], gone=True)
    async with stream(hostile, url, status.id) as source:
        last = await take(source, 2 if resource == SETS else 1)
    assert [event.data["type"] for event in last] == ["deleted", "status"][: len(last)]
