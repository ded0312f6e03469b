"""Filters and pages of lists of SampleSets and SampleJobs."""

from uuid import uuid4

import pytest

from app.domain.cache.reconcile.values import SampleEvent
from app.domain.cache.vocabulary import SampleEventType, SampleJobPhase, SetPhase
from tests.support.gateways.gateway import Gateway
from tests.support.kinds.samples import JOBS, RESOURCES, SETS, conclude, path, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def team() -> str:
    """Return a namespace that no other test uses."""
    return f"ns-{uuid4().hex[:12]}"


async def names(gateway: Gateway, resource: str, query: str = "", namespace: str = "") -> list[str]:
    url = path(resource, namespace=namespace) if namespace else f"/api/v1/{resource}"
    answer = await gateway.client.get(f"{url}?{query}")
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["items"]]


@pytest.mark.parametrize(("resource", "phase"), [(SETS, SetPhase.READY), (JOBS, SampleJobPhase.RUNNING)])
async def test_filters_select_objects(resource: str, phase: str, shared_gateway: Gateway, team: str) -> None:
    other, both = f"{team}-other", f"namespace={team}&namespace={team}-other"
    await submit(shared_gateway, resource, "train-a", namespace=team, labels={"team": "vision"})
    await submit(shared_gateway, resource, "train-b", namespace=team, labels={"team": "speech"})
    await submit(shared_gateway, resource, "eval", namespace=team)
    first = await submit(shared_gateway, resource, "train-a", namespace=other)
    await conclude(shared_gateway, first["uid"], {"phase": phase})

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
        assert await names(shared_gateway, resource, f"{both}&{query}") == expected, query
    assert await names(shared_gateway, resource, namespace=team) == ["eval", "train-b", "train-a"]
    assert await names(shared_gateway, resource, "labelSelector=team+notin+(vision),!x", team) == ["eval", "train-b"]


async def test_sample_jobs_are_filtered_by_their_set(shared_gateway: Gateway, team: str) -> None:
    await submit(shared_gateway, JOBS, "warm", namespace=team)
    await submit(shared_gateway, JOBS, "other", namespace=team, sampleSetRef={"name": "two"})
    assert await names(shared_gateway, JOBS, "set=one", team) == ["warm"]
    assert await names(shared_gateway, JOBS, "set=two&prefix=o", team) == ["other"]
    refused = await shared_gateway.client.get(f"/api/v1/{SETS}?set=one")
    assert (refused.status_code, refused.json()["code"]) == (400, "UnknownParameter")


@pytest.mark.parametrize("resource", RESOURCES)
async def test_history_and_events_are_paged(resource: str, shared_gateway: Gateway, team: str) -> None:
    created = await submit(shared_gateway, resource, namespace=team)
    for number in range(4):
        events = [SampleEvent(type=SampleEventType.WARNING, reason="ErrorCreatePV", message=f"try {number}")]
        await conclude(shared_gateway, created["uid"], reason="ErrorCreatePV", message=f"try {number}", events=events)
    for what, count in (("history", 5), ("events", 4)):
        url, sequence = path(resource, "one", what, namespace=team), []
        token: str | None = ""
        while token is not None:
            page = (
                await shared_gateway.client.get(f"{url}?pageSize=2" + (f"&pageToken={token}" if token else ""))
            ).json()
            sequence += [item["message"] for item in page["items"]]
            assert len(page["items"]) <= 2
            token = page["nextPageToken"]
        assert sequence[-4:] == [f"try {number}" for number in range(4)]
        assert len(sequence) == count
    last = (await shared_gateway.client.get(path(resource, "one", "events", namespace=team))).json()["items"][-1]
    assert (last["type"], last["reason"], last["message"]) == ("Warning", "ErrorCreatePV", "try 3")
