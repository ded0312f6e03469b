"""What clients see of the retention: when a record is deleted, how it is pinned, and what is left of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio

from app.db import purge
from app.db.purge import Purge
from app.domain.retention import Retention
from app.domain.vocabulary import JobPhase
from tests.db.factories import NOW, later
from tests.support.gateways.gateway import (
    NAMESPACE,
    Gateway,
    jobs_path,
    manifest,
    running_gateway,
    until_followed,
    until_open,
)

HELLO = jobs_path(NAMESPACE, "hello")
PATCH = {"Content-Type": "application/merge-patch+json"}
KEEP = "jobgate.dev/keep"
DOCUMENT = json.loads((Path(__file__).parents[3] / "openapi" / "openapi.json").read_text())
OF_JOB = "/api/v1/jobs/{uid}"
BY_UID = [path for path, methods in DOCUMENT["paths"].items() if path.startswith(OF_JOB) and "get" in methods]


@pytest_asyncio.fixture
async def keeping(database_url: str) -> AsyncIterator[Gateway]:
    retention = Retention(kept_for=timedelta(days=90), exceptions={"short": timedelta(hours=1), "museum": None})
    async with running_gateway(database_url, keep_jobs=retention) as running:
        yield running


async def end(gateway: Gateway, uid: str, **status: Any) -> None:
    await gateway.conclude(uid, {"phase": JobPhase.FAILED, "finished_at": NOW, "quiet": True, "gone_at": NOW, **status})


async def purge_all(gateway: Gateway, *namespaces: str) -> None:
    all_of = dict.fromkeys(namespaces or [NAMESPACE], later(1))
    work = Purge(db=gateway.db, of=purge.JOBS, ended_before=all_of)
    while not (await work.step()).is_last:
        pass


async def patch(gateway: Gateway, body: Any, **headers: str) -> httpx2.Response:
    return await gateway.client.patch(HELLO, content=json.dumps(body), headers=PATCH | headers)


def pin(value: str | None) -> Any:
    return {"metadata": {"annotations": {KEEP: value}}}


async def test_a_job_shows_when_its_record_is_deleted(keeping: Gateway) -> None:
    async def purge_at(namespace: str) -> Any:
        return (await keeping.client.get(jobs_path(namespace, "hello"))).json()["purgeAt"]

    for namespace in (NAMESPACE, "short", "museum"):
        created = await keeping.submit(namespace=namespace)
        assert created["purgeAt"] is None
        assert await purge_at(namespace) is None
        await end(keeping, created["uid"])
    expected = {NAMESPACE: "2026-05-30T12:00:00.250000Z", "short": "2026-03-01T13:00:00.250000Z", "museum": None}
    assert {namespace: await purge_at(namespace) for namespace in expected} == expected
    pinned = await patch(keeping, pin("true"))
    assert (pinned.status_code, pinned.json()["purgeAt"]) == (200, None)
    assert await purge_at(NAMESPACE) is None


async def test_an_ended_job_is_pinned_and_unpinned(gateway: Gateway) -> None:
    created = await gateway.submit()
    await end(gateway, created["uid"])
    before = await gateway.client.get(HELLO)
    pinned = await patch(gateway, pin("true"), **{"If-Match": before.headers["etag"]})
    assert (pinned.status_code, pinned.json()["annotations"]) == (200, {KEEP: "true"})
    assert pinned.headers["etag"] != before.headers["etag"]
    assert (await patch(gateway, pin("true"))).headers["etag"] == pinned.headers["etag"]
    assert (await patch(gateway, pin(None), **{"If-Match": before.headers["etag"]})).status_code == 412
    posted = await gateway.client.get(f"{HELLO}/posted-manifest")
    assert posted.json()["manifest"]["metadata"]["annotations"] == {KEEP: "true"}
    await purge_all(gateway)
    assert (await gateway.client.get(HELLO)).json()["uid"] == created["uid"]
    unpinned = await patch(gateway, pin(None))
    assert (unpinned.status_code, unpinned.json()["annotations"], unpinned.json()["generation"]) == (200, {}, 1)
    history = (await gateway.client.get(f"{HELLO}/history")).json()["items"]
    assert [entry["reason"] for entry in history] == ["Submitted", "Edited", "Edited"]
    async with gateway.db.read() as connection:
        assert await connection.fetchval("SELECT intent_at FROM jobs WHERE name = 'other'") is None
    await purge_all(gateway)
    assert (await gateway.client.get(HELLO)).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (pin("yes"), 422, "InvalidManifest"),
        (pin("TRUE"), 422, "InvalidManifest"),
        ({"metadata": {"annotations": {KEEP: "true", "other": "x"}}}, 409, "AlreadyFinished"),
        ({"metadata": {"annotations": {KEEP: "true"}, "labels": {"a": "b"}}}, 409, "AlreadyFinished"),
        ({"metadata": {"annotations": None}}, 409, "AlreadyFinished"),
        ({}, 409, "AlreadyFinished"),
    ],
)
async def test_nothing_else_of_an_ended_job_is_edited(gateway: Gateway, body: Any, status: int, code: str) -> None:
    created = await gateway.submit()
    await end(gateway, created["uid"])
    answer = await patch(gateway, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "jobgate.dev" in answer.text
    assert (await gateway.client.get(HELLO)).json()["annotations"] == {}


async def test_a_live_job_is_pinned_by_its_manifest_or_an_edit(gateway: Gateway) -> None:
    document = manifest("hello")
    document["metadata"]["annotations"] = {KEEP: "true"}
    created = await gateway.client.post(jobs_path(), json=document)
    assert created.status_code == 201
    other = await gateway.submit("other")
    edit = await gateway.client.patch(jobs_path(NAMESPACE, "other"), content=json.dumps(pin("true")), headers=PATCH)
    assert edit.status_code == 202
    for uid in (created.json()["uid"], other["uid"]):
        await end(gateway, uid)
        await gateway.conclude(uid, {"observed_generation": 1})
    await purge_all(gateway)
    assert {job["name"] for job in (await gateway.client.get("/api/v1/jobs")).json()["items"]} == {"hello", "other"}


async def test_a_pin_that_is_neither_is_refused_at_the_submission(gateway: Gateway) -> None:
    document = manifest("hello")
    document["metadata"]["annotations"] = {KEEP: "1"}
    answer = await gateway.client.post(jobs_path(), json=document)
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["accepted"]) == ("/metadata/annotations/jobgate.dev~1keep", "true or false")


async def test_each_read_by_the_uid_of_a_purged_job_is_410(closed_gateway: Gateway) -> None:
    """For callers that may see its namespace. For all others, it never existed."""
    gateway = closed_gateway
    submitter = await gateway.token("submitter", NAMESPACE)
    viewer, other = await gateway.token("viewer", NAMESPACE), await gateway.token("viewer", "other")
    created = await gateway.client.post(jobs_path(), json=manifest("hello"), headers=submitter)
    uid = created.json()["uid"]
    await end(gateway, uid)
    await purge_all(gateway)
    assert len(BY_UID) >= 10
    for path in BY_UID:
        url = path.replace("{uid}", uid)
        answer = await gateway.client.get(url, headers=viewer)
        assert (answer.status_code, answer.json()["code"]) == (410, "Purged"), path
        hidden = await gateway.client.get(url, headers=other)
        unknown = await gateway.client.get(path.replace("{uid}", str(uuid4())), headers=viewer)
        assert hidden.status_code == unknown.status_code == 404
        assert hidden.json() == unknown.json(), path


async def test_the_name_of_a_purged_job_is_free(gateway: Gateway) -> None:
    first = await gateway.submit()
    await end(gateway, first["uid"])
    await purge_all(gateway)
    second = await gateway.submit()
    assert (await gateway.client.get(HELLO)).json()["uid"] == second["uid"] != first["uid"]
    assert (await gateway.client.get(f"/api/v1/samplesets/{first['uid']}")).status_code == 404
    assert (await gateway.client.get(f"/api/v1/jobs/{first['uid']}")).status_code == 410


async def test_a_repeated_request_for_a_purged_job_does_not_run_it_again(gateway: Gateway) -> None:
    key = {"Idempotency-Key": "once"}
    first = await gateway.client.post(jobs_path(), json=manifest("hello"), headers=key)
    await end(gateway, first.json()["uid"])
    await purge_all(gateway)
    again = await gateway.client.post(jobs_path(), json=manifest("hello"), headers=key)
    assert (again.status_code, again.json()) == (200, first.json())


async def test_long_polls_learn_of_a_purge(gateway: Gateway) -> None:
    """One by the uid is answered 410. Those of lists are answered without the job, on whatever page it was."""
    uids = [(await gateway.submit(name))["uid"] for name in ("old", "hello")]
    for uid in uids:
        await end(gateway, uid)
    await until_followed(gateway)
    urls = [f"/api/v1/jobs/{uids[1]}", HELLO, "/api/v1/jobs", "/api/v1/jobs?pageSize=1", "/api/v1/jobs?phase=Failed"]
    tags = [(await gateway.client.get(url)).headers["etag"] for url in urls]

    async def poll(url: str, tag: str) -> httpx2.Response:
        return await gateway.client.get(url, headers={"If-None-Match": tag, "Prefer": "wait=60"})

    async with asyncio.TaskGroup() as group:
        polls = [group.create_task(poll(url, tag)) for url, tag in zip(urls, tags, strict=True)]
        await until_open(gateway, len(urls))
        await purge_all(gateway)
    by_uid, by_name, *lists = [poll.result() for poll in polls]
    assert (by_uid.status_code, by_name.status_code) == (410, 404)
    assert [(answer.status_code, answer.json()["items"]) for answer in lists] == [(200, [])] * 3


async def test_a_stream_says_nothing_of_a_purge(gateway: Gateway) -> None:
    """It continues, and older events of the job are left out."""
    position = (await gateway.client.get("/api/v1/jobs")).headers["jobgate-feed-position"]
    first = await gateway.submit()
    await end(gateway, first["uid"])
    await purge_all(gateway)
    second = await gateway.submit("other")
    await until_followed(gateway)
    headers = {"Last-Event-ID": position, "Accept": "application/jsonl"}
    async with gateway.client.stream("GET", "/api/v1/jobs/watch", headers=headers) as stream:
        events = (json.loads(line) async for line in stream.aiter_lines())
        shown = await anext(event["data"]["object"]["uid"] async for event in events if event["event"] == "job")
    assert shown == second["uid"]


async def test_a_retry_of_a_pinned_job_is_not_pinned(keeping: Gateway) -> None:
    annotated = manifest()
    annotated["metadata"]["annotations"] = {KEEP: "true", "example.com/note": "stays"}
    created = (await keeping.client.post(jobs_path(), json=annotated)).json()
    await end(keeping, created["uid"])
    assert (await keeping.client.get(HELLO)).json()["annotations"][KEEP] == "true"
    retried = (await keeping.client.post(f"{HELLO}/retry")).json()
    assert retried["annotations"] == {"example.com/note": "stays"}
    posted = (await keeping.client.get(f"/api/v1/jobs/{retried['uid']}/posted-manifest")).text
    assert "example.com/note" in posted
    assert KEEP not in posted
    async with keeping.db.read() as connection:
        assert [row["pinned"] for row in await connection.fetch("SELECT pinned FROM jobs ORDER BY pinned")] == [
            False,
            True,
        ]


async def test_a_namespace_pins_at_most_as_many_jobs_as_it_may(database_url: str) -> None:
    """By a submission, alone or with others, by an edit, and after the end. Each namespace has a limit of its own."""
    pinned = {"metadata": {"annotations": {KEEP: "true"}}}

    def kept(name: str) -> Any:
        document = manifest(name)
        return document | {"metadata": document["metadata"] | pinned["metadata"]}

    async with running_gateway(database_url, max_kept_jobs=2) as gateway:
        answers = [
            await gateway.client.post(jobs_path(), json=kept(name), headers={"Idempotency-Key": f"of-{name}"})
            for name in ("one", "two", "three")
        ]
        assert [answer.status_code for answer in answers] == [201, 201, 409]
        problem = answers[-1].json()
        assert problem["code"] == "TooManyKeptJobs"
        assert "the namespace team has 2 pinned jobs" in problem["detail"]
        assert problem["errors"][0]["pointer"] == "/metadata/annotations/jobgate.dev~1keep"
        again = await gateway.client.post(jobs_path(), json=kept("two"), headers={"Idempotency-Key": "of-two"})
        assert again.status_code == 200, "a repetition is answered as the first request"
        together = {"apiVersion": "v1", "kind": "List", "items": [manifest("four"), kept("five")]}
        several = await gateway.client.post(jobs_path() + "/batch?atomic=true", json=together)
        assert (several.status_code, several.json()["code"]) == (409, "TooManyKeptJobs")
        each = (await gateway.client.post(jobs_path() + "/batch", json=together)).json()["items"]
        assert [item["status"] for item in each] == [201, 409]
        uid = (await gateway.submit())["uid"]
        assert (await patch(gateway, pinned)).json()["code"] == "TooManyKeptJobs"
        await end(gateway, uid)
        assert (await patch(gateway, pinned)).json()["code"] == "TooManyKeptJobs"
        assert (await gateway.client.post(jobs_path("other"), json=kept("six"))).status_code == 201
        free = json.dumps({"metadata": {"annotations": {KEEP: None}}})
        unpinned = await gateway.client.patch(jobs_path(NAMESPACE, "one"), content=free, headers=PATCH)
        assert unpinned.status_code in {200, 202}
        assert (await patch(gateway, pinned)).json()["annotations"] == {KEEP: "true"}
        names = {job["name"] for job in (await gateway.client.get("/api/v1/jobs")).json()["items"]}
        assert names == {"one", "two", "four", "hello", "six"}


async def test_requests_at_the_same_time_pin_no_more_than_the_limit(database_url: str) -> None:
    document = manifest("kept")
    async with running_gateway(database_url, max_kept_jobs=3) as gateway:

        async def submit(number: int) -> int:
            metadata = document["metadata"] | {"name": f"kept-{number}", "annotations": {KEEP: "true"}}
            return (await gateway.client.post(jobs_path(), json=document | {"metadata": metadata})).status_code

        found = await asyncio.gather(*map(submit, range(12)))
        assert sorted(found) == [201] * 3 + [409] * 9
