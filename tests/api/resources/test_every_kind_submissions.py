"""Submissions, batches and dry runs, for all kinds of the registry."""

import asyncio
from typing import Any

import httpx2
import pytest
import yaml

from app.domain.kinds.base import JOBS
from tests.support.kinds.every_kind import Collection, list_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_submission_is_answered_with_its_location(of: Collection) -> None:
    for name, content_type, render in (("one", "json", None), ("two", "yaml", yaml.safe_dump)):
        body = render(of.manifest(name)) if render else of.manifest(name)
        sent = {"json": body} if render is None else {"content": body, "headers": {"Content-Type": "application/yaml"}}
        answer = await of.gateway.client.post(of.path(), **sent)
        assert (answer.status_code, answer.headers["location"]) == (201, of.path(name)), content_type
        assert answer.headers["cache-control"] == "no-store"
        read = await of.gateway.client.get(answer.headers["location"])
        assert (read.status_code, read.json()["uid"]) == (200, answer.json()["uid"])
        assert read.headers["etag"] == answer.headers["etag"]


async def test_a_name_in_use_is_refused(of: Collection) -> None:
    created = await of.submit()
    answer = await of.post(of.manifest())
    assert (answer.status_code, answer.json()["code"]) == (409, "NameTaken")
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/metadata/name", "NameTaken")
    assert created["uid"] in error["detail"]
    remedy = "wait until that job has ended" if of.resource == JOBS else "delete that one"
    assert error["accepted"] == f"another name, or {remedy}"


async def test_a_dry_run_stores_nothing(of: Collection) -> None:
    answer = await of.post(of.manifest(), "?dryRun=All")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["dryRun"], answer.json()["manifest"]["metadata"]["name"]) == (True, "one")
    both = await of.post(list_of(of.manifest("a"), of.manifest("b")), "?dryRun=All")
    assert [item["manifest"]["metadata"]["name"] for item in both.json()["items"]] == ["a", "b"]
    wrong = await of.post(of.manifest() | {"spec": 1}, "?dryRun=All")
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/spec")
    for body, expected in ((of.manifest(), ["one"]), (list_of(of.manifest("a"), of.manifest("b")), ["a", "b"])):
        answer = await of.gateway.client.post(of.path("dry-run"), json=body)
        assert answer.status_code == 200, answer.text
        assert [item["manifest"]["metadata"]["name"] for item in answer.json()["items"]] == expected
    refused = await of.gateway.client.post(of.path("dry-run"), json=of.manifest() | {"spec": 1})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/spec")
    assert await of.names() == []


async def test_a_list_is_stored_as_a_whole_or_not_at_all(of: Collection) -> None:
    key = {"Idempotency-Key": "k"}
    first = await of.post(list_of(of.manifest("a"), of.manifest("b")), **key)
    assert (first.status_code, [item["name"] for item in first.json()["items"]]) == (201, ["a", "b"]), first.text
    again = await of.post(list_of(of.manifest("a"), of.manifest("b")), **key)
    assert (again.status_code, again.headers["idempotency-replayed"], again.content) == (200, "true", first.content)
    taken = await of.post(list_of(of.manifest("c"), of.manifest("a"), of.manifest("b")), **{"Idempotency-Key": "l"})
    found = [(error["pointer"], error["code"]) for error in taken.json()["errors"]]
    assert (taken.status_code, found) == (
        409,
        [("/items/1/metadata/name", "NameTaken"), ("/items/2/metadata/name", "NameTaken")],
    )
    twice = await of.post(list_of(of.manifest("c"), of.manifest("c")))
    found = [(error["pointer"], error["code"]) for error in twice.json()["errors"]]
    assert (twice.status_code, found) == (422, [("/items/1/metadata/name", "Duplicate")])
    wrong = await of.post(list_of(of.manifest("c"), {**of.manifest("d"), "spec": 1}))
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/items/1/spec")
    assert sorted(await of.names()) == ["a", "b"]
    freed = await of.post(list_of(of.manifest("c"), of.manifest("d")), **{"Idempotency-Key": "l"})
    assert freed.status_code == 201


async def test_a_batch_has_a_result_for_each_item(of: Collection) -> None:
    await of.submit("b")
    bodies = list_of(of.manifest("a"), of.manifest("b"), {**of.manifest("c"), "spec": 1})
    for status in (201, 200):
        answer = await of.gateway.client.post(of.path("batch"), json=bodies, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 200, answer.text
        items = answer.json()["items"]
        assert [item["status"] for item in items] == [status, 409, 422]
        assert [item["object"] and item["object"]["name"] for item in items] == ["a", None, None]
        assert [item["problem"] and item["problem"]["code"] for item in items][1:] == ["NameTaken", "InvalidManifest"]
    assert sorted(await of.names()) == ["a", "b"]


async def test_an_atomic_batch_stores_all_items_or_none(of: Collection) -> None:
    async def post(*manifests: Any) -> httpx2.Response:
        headers = {"Idempotency-Key": "k"}
        query = {"atomic": "true"}
        url, body = of.path("batch"), list_of(*manifests)
        return await of.gateway.client.post(url, params=query, json=body, headers=headers)

    refused = await post(of.manifest("a"), of.manifest("b") | {"spec": 1})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/items/1/spec")
    assert await of.names() == []
    answers = [await post(of.manifest("a"), of.manifest("b")) for _ in range(2)]
    assert [answer.headers.get("idempotency-replayed") for answer in answers] == [None, "true"]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        items = [(item["status"], item["object"]["name"], item["problem"]) for item in answer.json()["items"]]
        assert items == [(201, "a", None), (201, "b", None)]
    assert sorted(await of.names()) == ["a", "b"]


async def test_an_idempotency_key_makes_a_repetition_harmless(of: Collection) -> None:
    key = {"Idempotency-Key": "k"}
    assert (await of.post(of.manifest() | {"spec": 1}, **key)).status_code == 422
    answers = await asyncio.gather(*(of.post(of.manifest(), **key) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    replayed = {200: "true", 201: None}
    for answer in answers:
        assert answer.headers.get("idempotency-replayed") == replayed[answer.status_code]
        assert answer.headers["location"] == of.path("one")
    assert len({answer.content for answer in answers}) == 1
    other = await of.post(of.manifest("two"), **key)
    assert (other.status_code, other.json()["code"]) == (422, "IdempotencyKeyReused")


async def test_generate_name_adds_a_random_suffix(of: Collection) -> None:
    generated = of.manifest() | {"metadata": {"generateName": "run-"}}
    names = [(await of.post(generated)).json()["name"] for _ in range(2)]
    assert len(set(names)) == 2
    assert all(name.startswith("run-") for name in names)
