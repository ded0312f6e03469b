"""Filters and pages of SampleSets and SampleJobs."""

from uuid import uuid4

import pytest

from app.domain.cache.reconcile.values import SampleEvent
from app.domain.cache.vocabulary import SampleEventType, SampleJobPhase, SetPhase
from tests.support.gateway import Gateway
from tests.support.samples import JOBS, RESOURCES, SETS, conclude, path, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def team() -> str:
    """A namespace that no other test uses."""
    return f"ns-{uuid4().hex[:12]}"


async def names(gateway: Gateway, resource: str, query: str = "", namespace: str = "") -> list[str]:
    url = path(resource, namespace=namespace) if namespace else f"/api/v1/{resource}"
    answer = await gateway.client.get(f"{url}?{query}")
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["items"]]


@pytest.mark.parametrize(("resource", "phase"), [(SETS, SetPhase.READY), (JOBS, SampleJobPhase.RUNNING)])
async def test_filters(resource: str, phase: str, hostile: Gateway, team: str) -> None:
    other, both = f"{team}-other", f"namespace={team}&namespace={team}-other"
    await submit(hostile, resource, "train-a", namespace=team, labels={"team": "vision"})
    await submit(hostile, resource, "train-b", namespace=team, labels={"team": "speech"})
    await submit(hostile, resource, "eval", namespace=team)
    first = await submit(hostile, resource, "train-a", namespace=other)
    await conclude(hostile, first["uid"], {"phase": phase})

    for query, expected in (
        ("", ["train-a", "eval", "train-b", "train-a"]),
        (f"phase={phase}", ["train-a"]),
        (f"phase={phase}&phase=", ["train-a", "eval", "train-b", "train-a"]),
        ("name=eval", ["eval"]),
        ("prefix=train-", ["train-a", "train-b", "train-a"]),
        ("search=rain-b", ["train-b"]),
        ("labelSelector=team%3Dvision", ["train-a"]),
        (f"uid={first['uid']}", ["train-a"]),
        (f"createdAfter={first['createdAt']}", ["train-a"]),
        (f"createdBefore={first['createdAt']}", ["eval", "train-b", "train-a"]),
    ):
        assert await names(hostile, resource, f"{both}&{query}") == expected, query
    assert await names(hostile, resource, namespace=team) == ["eval", "train-b", "train-a"]
    assert await names(hostile, resource, "labelSelector=team+notin+(vision),!x", team) == ["eval", "train-b"]


async def test_the_jobs_of_a_set(hostile: Gateway, team: str) -> None:
    await submit(hostile, JOBS, "warm", namespace=team)
    await submit(hostile, JOBS, "other", namespace=team, sampleSetRef={"name": "two"})
    assert await names(hostile, JOBS, "set=one", team) == ["warm"]
    assert await names(hostile, JOBS, "set=two&prefix=o", team) == ["other"]
    refused = await hostile.client.get(f"/api/v1/{SETS}?set=one")
    assert (refused.status_code, refused.json()["code"]) == (400, "UnknownParameter")


@pytest.mark.parametrize("resource", RESOURCES)
async def test_the_story_comes_in_pages_too(resource: str, hostile: Gateway, team: str) -> None:
    created = await submit(hostile, resource, namespace=team)
    for number in range(4):
        events = [SampleEvent(type=SampleEventType.WARNING, reason="ErrorCreatePV", message=f"try {number}")]
        await conclude(hostile, created["uid"], reason="ErrorCreatePV", message=f"try {number}", events=events)
    for what, count in (("history", 5), ("events", 4)):
        url, sequence = path(resource, "one", what, namespace=team), []
        token: str | None = ""
        while token is not None:
            page = (await hostile.client.get(f"{url}?pageSize=2" + (f"&pageToken={token}" if token else ""))).json()
            sequence += [item["message"] for item in page["items"]]
            assert len(page["items"]) <= 2
            token = page["nextPageToken"]
        assert sequence[-4:] == [f"try {number}" for number in range(4)]
        assert len(sequence) == count
    last = (await hostile.client.get(path(resource, "one", "events", namespace=team))).json()["items"][-1]
    assert (last["type"], last["reason"], last["message"]) == ("Warning", "ErrorCreatePV", "try 3")
