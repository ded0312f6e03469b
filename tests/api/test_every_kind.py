"""What the API does alike for every kind. The kinds come from the registry: one more is tested by registering it."""

import asyncio
from typing import Any

import pytest

from app.domain.kinds import registered
from tests.support.every_kind import Collection
from tests.support.gateway import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(params=sorted(registered()))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def of(kind: str, hostile: Gateway) -> Collection:
    return Collection(hostile, kind)


async def test_it_is_listed_among_the_kinds(kind: str, hostile: Gateway) -> None:
    items = (await hostile.client.get("/api/v1/kinds")).json()["items"]
    (item,) = [item for item in items if item["kind"] == kind]
    spoken = registered()[kind]
    assert item["resource"] == spoken.resource
    assert item["apiVersions"] == list(spoken.api_versions)
    assert {"/metadata/labels", "/metadata/annotations"} <= set(item["mutableFields"])


async def test_labels_are_edited_and_selected_alike(of: Collection) -> None:
    await of.submit(team="vision", tier="test")
    await of.submit("two", team="speech")
    assert await of.names("?labelSelector=team%3Dvision") == ["one"]
    edited = await of.patch({"metadata": {"labels": {"team": "audio", "tier": None}}})
    assert edited.status_code in (200, 202), edited.text
    assert edited.json()["labels"] == {"team": "audio"}
    assert await of.names("?labelSelector=team+in+(audio,speech),!tier") == ["two", "one"]


async def test_if_match_holds_every_edit(of: Collection) -> None:
    await of.submit()
    tag = (await of.get("one")).headers["etag"]
    patch = {"metadata": {"labels": {"a": "b"}}}
    first = await of.patch(patch, **{"If-Match": tag})
    assert first.status_code == 202, first.text
    client, url = of.gateway.client, of.path("one")
    refused = [
        await of.patch({"metadata": {"labels": {"a": "c"}}}, **{"If-Match": tag}),
        await client.put(url, json=of.manifest(), headers={"If-Match": tag}),
        await of.delete(**{"If-Match": tag}),
        await of.delete(**{"If-Match": f"W/{first.headers['etag']}"}),
    ]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [(412, "PreconditionFailed")] * 4
    assert (await of.delete(**{"If-Match": first.headers["etag"]})).status_code in (200, 202)


@pytest.mark.parametrize("more", [("one",), ("one", "status"), ()], ids=["whole", "status", "list"])
async def test_an_etag_and_a_long_poll_follow_a_change(more: tuple[str, ...], of: Collection) -> None:
    await of.submit()
    tag = (await of.get(*more)).headers["etag"]
    assert (await of.get(*more, **{"If-None-Match": tag})).status_code == 304
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        poll = group.create_task(of.get(*more, **{"If-None-Match": tag, "Prefer": "wait=30"}))
        while not of.gateway.services.lasting.count:
            await asyncio.sleep(0.01)
        await of.patch({"metadata": {"labels": {"a": "b"}}})
    assert poll.result().status_code == 200
    assert poll.result().headers["etag"] != tag


async def test_a_name_is_taken_alike(of: Collection) -> None:
    created = await of.submit()
    answer = await of.post(of.manifest())
    assert (answer.status_code, answer.json()["code"]) == (409, "NameTaken")
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/metadata/name", "NameTaken")
    assert created["uid"] in error["detail"]


async def test_a_key_makes_a_repetition_harmless(of: Collection) -> None:
    key = {"Idempotency-Key": "k"}
    answers = await asyncio.gather(*(of.post(of.manifest(), **key) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    assert len({answer.content for answer in answers}) == 1
    other = await of.post(of.manifest("two"), **key)
    assert (other.status_code, other.json()["code"]) == (422, "IdempotencyKeyReused")


async def test_a_name_is_drawn_alike(of: Collection) -> None:
    drawn = of.manifest() | {"metadata": {"generateName": "run-"}}
    names = [(await of.post(drawn)).json()["name"] for _ in range(2)]
    assert len(set(names)) == 2
    assert all(name.startswith("run-") for name in names)


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"spec": {"nothing": 1}}, "/spec/nothing", "UnknownField"),
        ({"extra": 1}, "/extra", "UnknownField"),
        ({"apiVersion": "example.com/v0"}, "/apiVersion", "UnknownKind"),
        ({"kind": "Nothing"}, "/kind", "UnknownKind"),
        ({"metadata": {"name": "A_b"}}, "/metadata/name", "InvalidName"),
        ({"metadata": {"name": "one", "namespace": "elsewhere"}}, "/metadata/namespace", "NamespaceMismatch"),
        ({"metadata": {"name": "one", "labels": {"jobgate.dev/x": "y"}}}, "/metadata/labels", "Reserved"),
    ],
)
async def test_errors_are_told_alike(change: dict[str, Any], pointer: str, code: str, of: Collection) -> None:
    answer = await of.post(of.manifest() | change)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = {(error["pointer"].partition("/jobgate")[0], error["code"]) for error in answer.json()["errors"]}
    assert (pointer, code) in found


@pytest.mark.parametrize(
    ("method", "url", "status", "code"),
    [
        ("GET", "?nothing=1", 400, "UnknownParameter"),
        ("GET", "?pageToken=abc", 400, "InvalidPageToken"),
        ("GET", "?createdAfter=2026-01-01T00:00:00", 400, "InvalidTime"),
        ("GET", "/none", 404, "NotFound"),
        ("GET", "/none/status", 404, "NotFound"),
        ("GET", "/none/history", 404, "NotFound"),
        ("GET", "/none/events", 404, "NotFound"),
        ("GET", "/none/watch", 404, "NotFound"),
        ("DELETE", "/none", 404, "NotFound"),
    ],
)
async def test_requests_are_refused_alike(method: str, url: str, status: int, code: str, of: Collection) -> None:
    answer = await of.gateway.client.request(method, of.path() + url)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
