"""ETags, 304, long polls and preconditions: the pure functions, and the answers of the API."""

import asyncio
import contextlib
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.answers.conditional import TAGS_PATTERN, check_if_match, list_tag, matches_tag, wait_seconds, whole_tag
from app.api.answers.errors import InvalidParameter
from app.db.installation import heartbeats, leases
from app.domain.errors import PreconditionFailed
from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, until_open
from tests.support.waiting import until

TAG = '"a-1"'


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, False),
        ("*", True),
        ('"a-1"', True),
        ('W/"a-1"', True),
        ('"b", W/"a-1" , "c"', True),
        ('"a-2"', False),
        ('"a"-1"', None),
        ("a-1", None),
        ('"unfinished', None),
    ],
)
def test_if_none_match_compares_weakly(header: str | None, *, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(InvalidParameter):
            matches_tag(header, TAG)
    else:
        assert matches_tag(header, TAG) is expected


@pytest.mark.parametrize(
    ("header", "passes"), [(None, True), ("*", True), (TAG, True), ('W/"a-1"', False), ('"b"', False)]
)
def test_if_match_compares_strongly(header: str | None, *, passes: bool) -> None:
    if passes:
        check_if_match(header, TAG, "job")
    else:
        with pytest.raises(PreconditionFailed):
            check_if_match(header, TAG, "job")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], 0),
        (["wait=5"], 5),
        (["respond-async, wait=5"], 5),
        (['wait="7"'], 7),
        (["WAIT = 9; foo"], 9),
        (["wait=100000"], 60),
        (["wait=-1"], 0),
        (["awaited=3"], 0),
        (["wait=x"], 0),
        (["respond-async", "wait=2"], 2),
    ],
)
def test_wait_seconds_of_the_prefer_header(headers: list[str], seconds: int) -> None:
    assert wait_seconds(headers) == seconds


@given(st.from_regex(TAGS_PATTERN, fullmatch=True))
def test_texts_of_the_documented_pattern_are_entity_tags(header: str) -> None:
    matches_tag(header, TAG)
    with contextlib.suppress(PreconditionFailed):
        check_if_match(header, TAG, "job")


@pytest.mark.parametrize("header", ["*", TAG, f"W/{TAG}", f'{TAG}, W/"", "b"'])
def test_entity_tags_have_the_documented_pattern(header: str) -> None:
    assert re.search(TAGS_PATTERN, header)


def test_tags_differ_by_version_order_and_query() -> None:
    a, b = UUID(int=1), UUID(int=2)
    assert len({whole_tag(a, 1), whole_tag(a, 2), whole_tag(b, 1)}) == 3
    assert len({list_tag([(a, 1), (b, 1)], "x"), list_tag([(b, 1), (a, 1)], "x"), list_tag([(a, 1), (b, 1)], "y")}) == 3


@pytest.mark.parametrize("path", [("hello",), ("hello", "status"), ()])
async def test_a_poll_answers_304_until_the_object_changes(path: tuple[str, ...], gateway: Gateway) -> None:
    created = await gateway.submit("hello")
    url = jobs_path(NAMESPACE, *path)
    first = await gateway.client.get(url)
    again = await gateway.client.get(url, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    for header in ("etag", "cache-control", "vary", "jobgate-stale"):
        assert again.headers[header] == first.headers[header]

    await gateway.conclude(created["uid"], {"phase": JobPhase.CREATING})
    changed = await gateway.client.get(url, headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]
    shown = changed.json()["items"][0] if "items" in changed.json() else changed.json()
    assert shown["status"]["phase"] == "Creating"


@pytest.mark.parametrize("path", [("hello",), ("hello", "status"), ()])
async def test_a_long_poll_ends_with_the_change(path: tuple[str, ...], gateway: Gateway) -> None:
    created = await gateway.submit("hello")
    url = jobs_path(NAMESPACE, *path)
    tag = (await gateway.client.get(url)).headers["etag"]
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(gateway.client.get(url, headers={"If-None-Match": tag, "Prefer": "wait=30"}))
        await until_open(gateway, 1)  # a change before the wait would be in the answer at once
        assert not poll.done()
        await gateway.conclude(created["uid"], {"phase": JobPhase.RUNNING})
    assert poll.result().status_code == 200
    assert '"phase":"Running"' in poll.result().text


async def test_a_long_poll_answers_304_after_its_wait(gateway: Gateway) -> None:
    await gateway.submit("hello")
    url = jobs_path(NAMESPACE, "hello")
    tag = (await gateway.client.get(url)).headers["etag"]
    began = time.monotonic()
    answer = await gateway.client.get(url, headers={"If-None-Match": tag, "Prefer": "wait=1"})
    assert answer.status_code == 304
    assert time.monotonic() - began >= 0.9
    assert (
        await gateway.client.get(url, headers={"Prefer": "wait=30"})
    ).status_code == 200  # without If-None-Match, there is no wait


async def test_a_submission_ends_the_long_poll_of_a_list(gateway: Gateway) -> None:
    tag = (await gateway.client.get("/api/v1/jobs")).headers["etag"]
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(
            gateway.client.get("/api/v1/jobs", headers={"If-None-Match": tag, "Prefer": "wait=30"})
        )
        await until_open(gateway, 1)  # a change before the wait would be in the answer at once
        await gateway.submit("hello")
    assert [item["name"] for item in poll.result().json()["items"]] == ["hello"]


async def test_if_match_refuses_edits_of_another_version(gateway: Gateway) -> None:
    await gateway.submit("hello")
    url = jobs_path(NAMESPACE, "hello")
    tag = (await gateway.client.get(url)).headers["etag"]
    patch = {"metadata": {"labels": {"tier": "web"}}}
    headers = {"Content-Type": "application/merge-patch+json", "If-Match": tag}
    first = await gateway.client.patch(url, json=patch, headers=headers)
    assert first.status_code == 202
    second = await gateway.client.patch(url, json={"metadata": {"labels": {"tier": "db"}}}, headers=headers)
    assert (second.status_code, second.json()["code"]) == (412, "PreconditionFailed")
    assert (await gateway.client.put(url, json=manifest("hello"), headers={"If-Match": tag})).status_code == 412
    assert (await gateway.client.post(url + "/cancel", headers={"If-Match": tag})).status_code == 412
    assert (await gateway.client.delete(url, headers={"If-Match": tag})).status_code == 412
    assert (await gateway.client.get(url)).json()["labels"] == {"tier": "web"}
    assert (await gateway.client.delete(url, headers={"If-Match": first.headers["etag"]})).status_code == 202


async def test_a_412_says_why_the_tag_of_the_current_version_does_not_match(gateway: Gateway) -> None:
    await gateway.submit("hello")
    url = jobs_path(NAMESPACE, "hello")
    tag = (await gateway.client.get(url)).headers["etag"]
    status = (await gateway.client.get(url + "/status")).headers["etag"]
    details = {
        sent: (await gateway.client.post(url + "/cancel", headers={"If-Match": sent})).json()["detail"]
        for sent in (f"W/{tag}", status, f"W/{status}", '"another"')
    }
    assert "a weak ETag (W/…) never matches If-Match" in details[f"W/{tag}"]
    of_status = "the ETag in If-Match is that of the status: send that of the job itself"
    assert details[status] == details[f"W/{status}"] == of_status
    assert "has changed since you read it" in details['"another"']


async def test_freshness_comes_from_the_heartbeat(gateway: Gateway) -> None:
    await gateway.submit("hello")
    url = jobs_path(NAMESPACE, "hello", "status")
    unknown = await gateway.client.get(url)
    assert unknown.headers["jobgate-stale"] == "true"
    assert "jobgate-observed-at" not in unknown.headers
    lease = await leases.acquire(gateway.db, "controller", "a test", ttl=60)
    assert lease is not None
    now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
    await heartbeats.beat(gateway.db, lease, now, "Running")
    answer = await until(
        lambda: gateway.client.get(url), lambda answer: answer.headers["jobgate-stale"] != "true", what="a fresh status"
    )
    seen = datetime.fromisoformat(answer.headers["jobgate-observed-at"])
    assert abs(seen - now) < timedelta(milliseconds=1)


async def test_a_poll_costs_one_small_read(gateway: Gateway) -> None:
    """Once a version is rendered, polls read only the current version of the job."""
    created = await gateway.submit("hello")
    reading = gateway.services.reading
    reads: list[str] = []
    for name in ("version", "summary", "whole", "row"):
        _count(reading, name, reads)
    url = jobs_path(NAMESPACE, "hello", "status")
    tag = (await gateway.client.get(url)).headers["etag"]
    assert reads == ["version", "summary"]
    for headers in ({}, {"If-None-Match": tag}, {}):
        await gateway.client.get(url, headers=headers)
    assert reads[2:] == ["version", "version", "version"]
    await gateway.conclude(created["uid"], {"phase": JobPhase.RUNNING})
    assert (await gateway.client.get(url, headers={"If-None-Match": tag})).status_code == 200
    assert reads[5:] == ["version", "summary"]
    await gateway.client.get(f"/api/v1/jobs/{created['uid']}/history")
    assert reads[7:] == ["version"], "the namespace of a uid needs no manifest"


def _count(reading: Any, name: str, reads: list[str]) -> None:
    real = getattr(reading, name)

    async def counted(*arguments: Any) -> Any:
        reads.append(name)
        return await real(*arguments)

    setattr(reading, name, counted)
