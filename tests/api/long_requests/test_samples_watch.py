"""Streams of SampleSets and SampleJobs: each has the events of its resource, and can be resumed."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from tests.api.long_requests.test_watch import Event, stream, take
from tests.support.gateways.gateway import Gateway
from tests.support.kinds.samples import JOBS, RESOURCES, SETS, conclude, path, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVENT_NAMES = {SETS: "sampleset", JOBS: "samplejob"}


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid4().hex[:12]}"


async def until(source: AsyncIterator[Event], what: str) -> Event:
    async with asyncio.timeout(60):
        async for event in source:
            if event.name != "ready" and event.data["type"] == what:
                return event
    raise AssertionError(f"no {what}")


async def test_a_stream_has_only_events_of_its_resource(shared_gateway: Gateway, namespace: str) -> None:
    mine = f"watch?namespace={namespace}"
    async with (
        stream(shared_gateway, f"/api/v1/jobs/{mine}") as of_jobs,
        stream(shared_gateway, f"/api/v1/samplesets/{mine}") as of_sets,
        stream(shared_gateway, f"/api/v1/samplejobs/{mine}") as of_sample_jobs,
    ):
        for source in (of_jobs, of_sets, of_sample_jobs):
            assert (await take(source, 1))[0].name == "ready"
        await submit(shared_gateway, JOBS, namespace=f"{namespace}-other")
        await submit(shared_gateway, SETS, namespace=namespace)
        await submit(shared_gateway, JOBS, namespace=namespace)
        await shared_gateway.submit("job", namespace)
        (event,) = await take(of_jobs, 1)
        assert (event.name, event.data["object"]["name"]) == ("job", "job")
        (event,) = await take(of_sets, 1)
        assert (event.name, event.data["object"]["kind"]) == ("sampleset", "SampleSet")
        (event,) = await take(of_sample_jobs, 1)
        assert (event.name, event.data["object"]["namespace"]) == ("samplejob", namespace)


@pytest.mark.parametrize("resource", RESOURCES)
async def test_a_stream_has_all_events_of_an_object(resource: str, shared_gateway: Gateway, namespace: str) -> None:
    listed = await shared_gateway.client.get(path(resource, namespace=namespace))
    created = await submit(shared_gateway, resource, namespace=namespace)
    await submit(shared_gateway, resource, "noise", namespace=namespace)
    url, name = path(resource, "one", "watch", namespace=namespace), EVENT_NAMES[resource]
    async with stream(shared_gateway, url, listed.headers["jobgate-feed-position"]) as source:
        await conclude(shared_gateway, created["uid"], reason="ErrorSecretNotExist", message="secret a is not exist")
        first, status = await until(source, "created"), await until(source, "status")
    for event in (first, status):
        assert (event.name, event.data["object"]["name"]) == (name, "one")
    await shared_gateway.client.delete(path(resource, "one", namespace=namespace))
    if resource == SETS:
        await conclude(shared_gateway, created["uid"], gone=True)
    async with stream(shared_gateway, url, status.id) as source:
        last = await take(source, 2 if resource == SETS else 1)
    assert [event.data["type"] for event in last] == ["deleted", "status"][: len(last)]
    assert last[-1].data["object"]["status"].get("removal") == ("gone" if resource == SETS else None)
