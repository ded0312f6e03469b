"""Filters and pages of lists of jobs."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.answers.errors import InvalidParameter
from app.api.requests import paging
from app.api.shared.job_views import JobViewCache, Rendered
from app.db.jobs.rows import JobRow
from app.domain.queueing.admission import Queueing
from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import Gateway, jobs_path, manifest
from tests.support.lists import examine_few

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


async def names(gateway: Gateway, query: str = "", namespace: str | None = None) -> list[str]:
    path = jobs_path(namespace) if namespace else "/api/v1/jobs"
    answer = await gateway.client.get(f"{path}?{query}")
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["items"]]


async def test_filters_select_jobs(gateway: Gateway) -> None:
    for name, labels in (("train-a", {"team": "vision"}), ("train-b", {"team": "speech"}), ("eval", {})):
        answer = await gateway.client.post(jobs_path(), json=manifest(name, labels=labels))
        assert answer.status_code == 201
    await gateway.submit("train-a", "other")
    first = (await gateway.client.get(jobs_path("other"))).json()["items"][0]
    await gateway.conclude(first["uid"], {"phase": JobPhase.SUCCEEDED, "finished_at": EPOCH})

    assert await names(gateway) == ["train-a", "eval", "train-b", "train-a"]
    assert await names(gateway, namespace="team") == ["eval", "train-b", "train-a"]
    assert await names(gateway, "namespace=team") == ["eval", "train-b", "train-a"]
    assert len(await names(gateway, "namespace=team&namespace=other")) == 4
    assert await names(gateway, "phase=Succeeded") == ["train-a"]
    assert len(await names(gateway, "phase=Succeeded&phase=Queued")) == 4
    assert await names(gateway, "search=train", "team") == ["train-b", "train-a"]
    assert await names(gateway, "labelSelector=team%3Dvision") == ["train-a"]
    assert await names(gateway, "labelSelector=team+notin+(vision),!x", "team") == ["eval", "train-b"]
    assert await names(gateway, "kind=MxJob") == []
    assert await names(gateway, "kind=GenericJob&kind=MxJob", "other") == ["train-a"]
    assert await names(gateway, f"uid={first['uid']}") == ["train-a"]
    assert await names(gateway, f"createdAfter={first['createdAt']}") == ["train-a"]
    assert await names(gateway, f"createdBefore={first['createdAt']}", "other") == []
    assert await names(gateway, "finishedAfter=2025-12-31T23:00:00%2B01:00") == ["train-a"]
    assert await names(gateway, "finishedBefore=2026-01-01T00:00:00Z") == []


async def test_jobs_are_listed_by_their_queue(gateway: Gateway) -> None:
    for name, queue in (("waits", "team"), ("other", "night"), ("free", None)):
        uid = (await gateway.submit(name))["uid"]
        await gateway.conclude(uid, {"queueing": Queueing(name=queue, queued_at=EPOCH)} if queue else {})
    assert await names(gateway, "queue=team") == ["waits"]
    assert await names(gateway, "queue=team&view=summary", "team") == ["waits"]
    assert await names(gateway, "queue=none") == []
    counts = (await gateway.client.get("/api/v1/jobs/counts?queue=night")).json()["kinds"]
    assert [(entry["kind"], entry["count"]) for entry in counts if entry["count"]] == [("GenericJob", 1)]
    assert (await gateway.client.get("/api/v1/samplesets?queue=team")).status_code == 400
    detail = (await gateway.client.get(jobs_path("team", "waits"))).json()["status"]["queue"]
    assert detail == {
        "name": "team",
        "admitted": False,
        "queuedAt": "2026-01-01T00:00:00Z",
        "admittedAt": None,
        "eviction": None,
    }


async def test_ended_jobs_of_which_replicas_run_are_found_however_many_have_ended_since(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    examine_few(monkeypatch, 4, first=2)
    ended = {"phase": JobPhase.FAILED, "finished_at": EPOCH, "quiet": False}
    await gateway.conclude((await gateway.submit("left"))["uid"], ended | {"still_running": 2})
    await gateway.conclude((await gateway.submit("stopping"))["uid"], ended)
    for number in range(12):
        await gateway.conclude((await gateway.submit(f"over-{number}"))["uid"], ended | {"quiet": True})
    answer = (await gateway.client.get("/api/v1/jobs?stillRunning=true&pageSize=5")).json()
    assert ([item["name"] for item in answer["items"]], answer["nextPageToken"]) == (["left"], None)
    counts = (await gateway.client.get("/api/v1/jobs/counts?stillRunning=true")).json()["phases"]
    assert [(entry["phase"], entry["count"]) for entry in counts if entry["count"]] == [("Failed", 1)]
    assert (await gateway.client.get("/api/v1/samplesets?stillRunning=true")).status_code == 400


async def test_deleted_jobs_are_listed_on_request(gateway: Gateway) -> None:
    created = await gateway.submit("gone")
    assert (await gateway.client.delete(jobs_path("team", "gone"))).status_code == 202
    assert await names(gateway) == []
    assert await names(gateway, "deleted=true") == ["gone"]
    assert await names(gateway, f"uid={created['uid']}") == ["gone"]


async def test_pages_show_each_job_once_while_others_are_submitted(gateway: Gateway) -> None:
    before = [f"job-{number}" for number in range(25)]
    for name in before:
        await gateway.submit(name, replicas=1)
    seen: list[str] = []
    token, pages = "", 0
    while True:
        answer = (await gateway.client.get(jobs_path() + f"?pageSize=4&pageToken={token}".rstrip("="))).json()
        seen += [item["name"] for item in answer["items"]]
        pages += 1
        await gateway.submit(f"late-{pages}", replicas=1)
        token = answer["nextPageToken"]
        if token is None:
            break
    assert seen == list(reversed(before))
    assert pages == 7


async def test_a_page_that_examines_too_few_jobs_is_short_and_has_a_successor(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    examine_few(monkeypatch, 3, first=1)
    for name in ("a", "b", "rare", "c", "d", "e"):
        await gateway.submit(name, replicas=1)
    first = f"{jobs_path()}?search=rar&pageSize=2"
    answers = [(await gateway.client.get(first)).json()]
    while token := answers[-1]["nextPageToken"]:
        answers.append((await gateway.client.get(f"{first}&pageToken={token}")).json())
    assert [[item["name"] for item in answer["items"]] for answer in answers] == [[], ["rare"], []]


async def test_a_page_token_belongs_to_its_query(gateway: Gateway) -> None:
    for name in ("a", "b"):
        await gateway.submit(name)
    token = (await gateway.client.get(jobs_path() + "?pageSize=1")).json()["nextPageToken"]
    assert await names(gateway, f"pageSize=9&pageToken={token}", "team") == ["a"]  # the size may change
    answer = await gateway.client.get(jobs_path() + f"?search=a&pageToken={token}")
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidPageToken")


async def test_a_view_that_the_cache_drops_while_a_list_is_rendered_is_rendered_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list loads no replicas for a cached view, so it must load them if the cache drops the view meanwhile."""
    await gateway.submit("a")
    before = (await gateway.client.get(jobs_path())).json()
    find, calls = JobViewCache.find, 0

    def find_only_at_first(views: JobViewCache, row: JobRow) -> Rendered | None:
        nonlocal calls
        calls += 1
        return find(views, row) if calls == 1 else None

    monkeypatch.setattr(JobViewCache, "find", find_only_at_first)
    assert (await gateway.client.get(jobs_path())).json() == before
    assert calls > 1


async def test_a_page_size_over_the_maximum_is_reduced(gateway: Gateway) -> None:
    await gateway.submit("a")
    assert await names(gateway, "pageSize=100000") == ["a"]
    assert [paging.page_size(size) for size in (None, 7, 10**9)] == [100, 7, 500]


@given(st.datetimes(timezones=st.just(UTC)), st.uuids(), st.text(max_size=10))
def test_a_page_token_decodes_to_its_start(moment: datetime, uid: Any, query: str) -> None:
    start = paging.ObjectStart(query=query, created_at=moment, uid=uid)
    assert paging.decode(paging.encode(start), paging.ObjectStart, query) == start
    with pytest.raises(InvalidParameter):
        paging.decode(paging.encode(start), paging.ObjectStart, query + "x")
    with pytest.raises(InvalidParameter):
        paging.decode(paging.encode(start), paging.SequenceStart, query)


@given(st.text(max_size=600) | st.binary(max_size=60).map(lambda raw: raw.hex()))
def test_any_other_page_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidParameter):
        paging.decode(token, paging.SequenceStart, "q")
