"""The behaviour that all kinds have in common. The kinds come from the registry, so a new kind needs no new test."""

import asyncio
from functools import cache
from typing import Any

import pytest

from app.domain.kinds.base import JOBS
from app.domain.kinds.registry import all_kinds
from app.running.application import create_app
from tests.api.long_requests.test_watch import stream, take
from tests.support.gateways.gateway import Gateway
from tests.support.kinds.every_kind import Collection
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMMON = {
    *("uid", "namespace", "name", "kind", "apiVersion", "labels", "annotations", "generation", "createdAt"),
    *("createdBy", "createdById", "deletedAt", "spec", "status", "nativeStatus", "conditions"),
}
STATUS = {"uid", "namespace", "name", "kind", "generation", "deletedAt", "status", "conditions"}
NO_UID = "00000000-0000-4000-8000-000000000000"
OUTCOME = {"phase", "reason", "message", "observedGeneration", "startedAt", "finishedAt", "observedAt"}


async def test_the_kind_is_listed(kind: str, shared_gateway: Gateway) -> None:
    items = (await shared_gateway.client.get("/api/v1/kinds")).json()["items"]
    (item,) = [item for item in items if item["kind"] == kind]
    registered_kind = all_kinds()[kind]
    assert item["resource"] == registered_kind.resource
    assert item["apiVersions"] == list(registered_kind.api_versions)
    assert {"/metadata/labels", "/metadata/annotations"} <= set(item["mutableFields"])


@cache
def reads_by_uid(resource: str) -> list[str]:
    """Return the routes that read an object of the resource by its uid."""
    paths = create_app().openapi()["paths"]
    return [path for path, item in paths.items() if path.startswith(f"/api/v1/{resource}/{{uid}}") and "get" in item]


async def test_objects_have_the_common_fields(of: Collection) -> None:
    created = await of.submit(team="vision")
    whole = (await of.get("one")).json()
    assert whole["uid"] == created["uid"]
    assert set(created) >= COMMON
    assert set(whole) == set(created)
    assert (whole["labels"], whole["generation"], whole["deletedAt"]) == ({"team": "vision"}, 1, None)
    assert set(whole["status"]) >= OUTCOME
    assert whole["conditions"] == []
    status = (await of.get("one", "status")).json()
    assert set(status) == STATUS
    assert status["status"] == whole["status"]


async def test_objects_are_read_by_uid(of: Collection) -> None:
    created = await of.submit()
    client = of.gateway.client
    for more in ((), ("status",), ("history",), ("events",)):
        by_name, by_uid = await of.get("one", *more), await client.get(of.by_uid(created["uid"], *more))
        assert (by_uid.status_code, by_uid.content) == (200, by_name.content), more
        assert by_uid.headers.get("etag") == by_name.headers.get("etag")
    missing = await client.get(of.by_uid(NO_UID))
    assert (missing.status_code, missing.json()["code"]) == (404, "NotFound")
    other = "samplesets" if of.resource == JOBS else JOBS
    elsewhere = await client.get(f"/api/v1/{other}/{created['uid']}")
    assert elsewhere.status_code == 404


async def test_labels_are_edited_and_selected(of: Collection) -> None:
    await of.submit(team="vision", tier="test")
    await of.submit("two", team="speech")
    assert await of.names("?labelSelector=team%3Dvision") == ["one"]
    edited = await of.patch({"metadata": {"labels": {"team": "audio", "tier": None}}})
    assert edited.status_code in (200, 202), edited.text
    assert edited.json()["labels"] == {"team": "audio"}
    assert await of.names("?labelSelector=team+in+(audio,speech),!tier") == ["two", "one"]


async def test_if_match_applies_to_every_edit(of: Collection) -> None:
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
    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(412, "PreconditionFailed")] * 4
    noun = "job" if of.resource == JOBS else of.kind
    details = [answer.json()["detail"].removeprefix(f"the {noun} has ") for answer in refused]
    assert [detail.partition(" ")[0] for detail in details] == ["changed", "changed", "changed", "not"]
    assert (await of.delete(**{"If-Match": first.headers["etag"]})).status_code in (200, 202)


async def test_if_match_applies_to_an_end_that_meets_an_edit(of: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit is stored after the check of the request to end the object, and before that request is stored."""
    await of.submit()
    services = of.gateway.services
    editor: Any = services.editor if of.resource == JOBS else services.samples[of.resource].editor
    read = editor.current
    requests = {"delete": ("DELETE", of.path("one"))}
    if of.resource == JOBS:  # only jobs are cancelled
        requests["cancel"] = ("POST", of.path("one", "cancel"))
    for end, (method, url) in requests.items():
        tag = (await of.get("one")).headers["etag"]

        async def current(namespace: str, name: str, end: str = end) -> Any:
            row = await read(namespace, name)
            monkeypatch.setattr(editor, "current", read)
            assert (await of.patch({"metadata": {"labels": {"edited-before": end}}})).status_code == 202
            return row

        monkeypatch.setattr(editor, "current", current)
        refused = await of.gateway.client.request(method, url, headers={"If-Match": tag})
        assert (refused.status_code, refused.json()["code"]) == (412, "PreconditionFailed")
        shown = (await of.get("one")).json()
        assert (shown["deletedAt"], shown["labels"]) == (None, {"edited-before": end})


async def test_an_edit_may_omit_its_metadata(of: Collection) -> None:
    await of.submit(team="vision")
    labels = [(await of.patch({"metadata": None})).json()["labels"]]
    documents: list[dict[str, Any]] = [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"labels": {"a": "b"}}}]
    for metadata in documents:
        document = {key: value for key, value in of.manifest().items() if key != "metadata"} | metadata
        answer = await of.gateway.client.put(of.path("one"), json=document)
        assert answer.status_code in (200, 202), answer.text
        labels.append(answer.json()["labels"])
    assert labels == [{}, {}, {}, {}, {"a": "b"}]
    wrong = await of.gateway.client.put(of.path("one"), json=of.manifest() | {"metadata": []})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/metadata")


@pytest.mark.parametrize("more", [("one",), ("one", "status"), ()], ids=["whole", "status", "list"])
async def test_a_change_ends_a_long_poll_with_a_new_etag(more: tuple[str, ...], of: Collection) -> None:
    uid, message = (await of.submit())["uid"], "secret a does not exist"

    async def edit() -> None:
        await of.patch({"metadata": {"labels": {"a": "b"}}})

    async def conclude() -> None:
        await of.conclude(uid, message)

    for change in (edit, conclude):
        tag = (await of.get(*more)).headers["etag"]
        assert (await of.get(*more, **{"If-None-Match": tag})).status_code == 304
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            poll = group.create_task(of.get(*more, **{"If-None-Match": tag, "Prefer": "wait=30"}))
            await until(lambda: of.gateway.services.long_requests.count, what="the poll waits")
            await change()
        assert poll.result().status_code == 200, change
        assert poll.result().headers["etag"] != tag
        assert (message in poll.result().text) == (change == conclude)


async def test_a_long_poll_without_a_change_ends_with_304(shared_gateway: Gateway) -> None:
    async def poll(of: Collection) -> int:
        await of.submit()
        tag = (await of.get("one", "status")).headers["etag"]
        answer = await of.get("one", "status", **{"If-None-Match": tag, "Prefer": "wait=1"})
        return int(answer.status_code)

    answers = await asyncio.gather(*(poll(Collection(shared_gateway, kind)) for kind in all_kinds()))
    assert answers == [304] * len(all_kinds())


async def test_a_record_stays_readable_after_its_deletion(of: Collection) -> None:
    created = await of.submit(team="vision")
    await of.patch({"metadata": {"labels": {"a": "b"}}})
    deleted = await of.delete(query="?reason=old")
    assert deleted.status_code in (200, 202), deleted.text
    at = deleted.json()["deletedAt"]
    assert at is not None
    assert (await of.delete()).json()["deletedAt"] == at
    for more in ((), ("status",)):
        shown = await of.get("one", *more)
        assert (shown.status_code, shown.json()["deletedAt"]) == (200, at)
    history = (await of.get("one", "history")).json()["items"]
    assert [entry["seq"] for entry in history] == list(range(1, len(history) + 1))
    requested = next(entry for entry in history if entry["reason"] == "DeleteRequested")
    assert (requested["message"], requested["actor"]) == ("old", "anonymous")
    assert (requested is history[-1], history[0]["actor"]) == (True, "anonymous")
    assert set(history[0]) == {"seq", "at", "phase", "reason", "message", "actor", "actorId", "task", "rank", "attempt"}
    assert await of.names() == []
    assert await of.names("?deleted=true") == ["one"]
    assert await of.names(f"?uid={created['uid']}") == ["one"]
    edited = await of.patch({"metadata": {"labels": {"a": "b"}}})
    assert (edited.status_code, edited.json()["code"]) == (409, "Deleted")


async def test_lists_have_the_common_filters_and_pages(of: Collection) -> None:
    created = [await of.submit(name) for name in ("train-a", "train-b", "eval")]
    for query, expected in (
        ("name=eval", ["eval"]),
        ("prefix=train-", ["train-b", "train-a"]),
        ("search=rain-b", ["train-b"]),
        (f"kind={of.kind}", ["eval", "train-b", "train-a"]),
        ("kind=Other", []),
        (f"uid={created[1]['uid']}", ["train-b"]),
        ("createdAfter=2200-01-01T00:00:00Z", []),
        ("finishedAfter=2000-01-01T00:00:00Z", []),
        (f"phase={created[0]['status']['phase']}", ["eval", "train-b", "train-a"]),
    ):
        assert await of.names(f"?{query}") == expected, query
    page = (await of.get(query="?pageSize=2")).json()
    await of.submit("late")
    other = await of.get(query=f"?pageSize=2&search=a&pageToken={page['nextPageToken']}")
    assert (other.status_code, other.json()["code"]) == (400, "InvalidPageToken")
    rest = (await of.get(query=f"?pageSize=2&pageToken={page['nextPageToken']}")).json()
    assert [item["name"] for item in (*page["items"], *rest["items"])] == ["eval", "train-b", "train-a"]
    assert rest["nextPageToken"] is None


async def test_a_page_token_belongs_to_its_resource(of: Collection) -> None:
    for name in ("a", "b"):
        await of.submit(name)
    token = (await of.get(query="?pageSize=1")).json()["nextPageToken"]
    others = {other.resource for other in all_kinds().values()} - {of.resource}
    assert others
    for resource in others:
        url = f"/api/v1/namespaces/{of.namespace}/{resource}?pageToken={token}"
        answer = await of.gateway.client.get(url)
        assert (answer.status_code, answer.json().get("code")) == (400, "InvalidPageToken"), resource


async def test_all_streams_have_the_same_events(of: Collection) -> None:
    listed = await of.get()
    created = await of.submit()
    await of.patch({"metadata": {"labels": {"a": "b"}}})
    await of.delete()
    one, all_of_it = of.path("one", "watch"), f"/api/v1/{of.resource}/watch?namespace={of.namespace}"
    for url in (one, all_of_it, of.by_uid(created["uid"], "watch")):
        async with asyncio.timeout(60), stream(of.gateway, url, listed.headers["jobgate-feed-position"]) as source:
            received = await take(source, 3)
        assert [event.data["type"] for event in received] == ["created", "edited", "deleted"]
        for event in received:
            assert set(event.data) == {"type", "at", "object"}
            assert set(event.data["object"]) == STATUS
            assert event.data["object"]["name"] == "one"


@pytest.mark.asyncio(loop_scope="function")
async def test_roles_and_namespaces_limit_access(kind: str, closed_gateway: Gateway) -> None:
    of = Collection(closed_gateway, kind)
    submitter = await closed_gateway.token("submitter", of.namespace)
    viewer = await closed_gateway.token("viewer", of.namespace)
    outsider = await closed_gateway.token("submitter", "elsewhere")
    created = await of.post(of.manifest(), **submitter)
    assert created.status_code == 201
    by_uid = of.by_uid(created.json()["uid"])
    client = closed_gateway.client
    assert [(await client.get(by_uid, headers=who)).status_code for who in (viewer, outsider)] == [200, 404]
    assert [(await of.get("one", **who)).status_code for who in (viewer, outsider)] == [200, 404]
    for route in reads_by_uid(of.resource):
        foreign, unknown = [
            await client.get(route.format(uid=uid), headers=outsider) for uid in (created.json()["uid"], NO_UID)
        ]
        assert (foreign.status_code, foreign.json()) == (404, unknown.json()), route
    refused = [
        await of.post(of.manifest("two"), **viewer),
        await client.post(of.path("batch"), json=of.manifest("two"), headers=viewer),
        await of.patch({}, **viewer),
        await of.delete(**viewer),
    ]
    assert [answer.status_code for answer in refused] == [403] * 4


async def test_what_get_returns_can_be_put_back(of: Collection) -> None:
    await of.submit(team="vision")
    before = await of.get("one")
    back = await of.gateway.client.put(of.path("one"), json=before.json(), headers={"If-Match": before.headers["etag"]})
    assert back.status_code in (200, 202), back.text
    assert back.json() == before.json()
    assert (await of.get("one")).headers["etag"] == before.headers["etag"]

    changed = before.json() | {"labels": {}, "annotations": {"note": "mine"}}
    edited = await of.gateway.client.put(of.path("one"), json=changed)
    assert edited.status_code == 202, edited.text
    assert (edited.json()["labels"], edited.json()["annotations"]) == ({}, {"note": "mine"})
    assert edited.json()["spec"] == before.json()["spec"]
    again = await of.gateway.client.put(of.path("one"), json=edited.json() | {"labels": {}})
    assert again.json() == edited.json()

    wrong = {"extra": 1, "name": "two", "namespace": "two", "labels": {"a": "-"}, "annotations": {"jobgate.dev/x": ""}}
    for field, value in wrong.items():
        body = changed | {field: value}
        pointer = {"labels": "/labels/a", "annotations": "/annotations/jobgate.dev~1x"}.get(field, f"/{field}")
        refused = await of.gateway.client.put(of.path("one"), json=body)
        assert refused.status_code == 422, refused.text
        assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]
