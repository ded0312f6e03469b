"""Lists with `view=summary`: what a table of objects shows, without anything of the size of a manifest."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from app.domain.status.records import JobPendingReason
from app.domain.vocabulary import JobPhase, PendingCode, ReplicaPhase
from tests.support.gateways.gateway import Gateway, jobs_path, manifest
from tests.support.kinds.every_kind import Collection

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIELDS = {
    "uid",
    "namespace",
    "name",
    "kind",
    "generation",
    "createdAt",
    "createdBy",
    "createdById",
    "deletedAt",
    "labels",
    "status",
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fields(of: Collection) -> set[str]:
    """Return the fields of a summary. Only jobs can be imported."""
    return FIELDS | {"importedAt"} if of.resource == "jobs" else FIELDS


async def test_a_summary_has_the_status_and_no_manifest(of: Collection) -> None:
    created = await of.submit()
    for url in (of.path(), f"/api/v1/{of.resource}"):
        answer = await of.gateway.client.get(url, params={"view": "summary", "uid": created["uid"]})
        assert answer.status_code == 200, answer.text
        (item,) = answer.json()["items"]
        assert set(item) == fields(of)
        whole = (await of.get("one")).json()
        assert item == {name: whole[name] for name in fields(of)}
        assert "jobgate-feed-position" in answer.headers


async def test_summaries_have_pages_and_filters(of: Collection) -> None:
    for name in ("a", "b", "c"):
        await of.submit(name)
    first = (await of.get(query="?view=summary&pageSize=2")).json()
    assert [item["name"] for item in first["items"]] == ["c", "b"]
    rest = (await of.get(query=f"?view=summary&pageSize=2&pageToken={first['nextPageToken']}")).json()
    assert ([item["name"] for item in rest["items"]], rest["nextPageToken"]) == (["a"], None)
    assert await of.names("?view=summary&prefix=b") == ["b"]
    assert {(await of.get(query=f"?view={view}")).json()["view"] for view in ("full", "summary")} == {"full", "summary"}
    refused = await of.get(query="?view=table")
    assert (refused.status_code, refused.json()["code"]) == (400, "InvalidParameter")
    assert (refused.json()["errors"][0]["pointer"], refused.json()["errors"][0]["accepted"]) == (
        "/query/view",
        "'full' or 'summary'",
    )


async def test_a_list_of_summaries_can_be_polled(of: Collection) -> None:
    uid = (await of.submit())["uid"]
    whole, summary = await of.get(), await of.get(query="?view=summary")
    assert whole.headers["etag"] != summary.headers["etag"]
    known = {"If-None-Match": summary.headers["etag"]}
    assert (await of.get(query="?view=summary", **known)).status_code == 304
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        polling = group.create_task(of.get(query="?view=summary", **known, Prefer="wait=50"))
        await of.conclude(uid, "another message")
    changed = polling.result()
    assert changed.status_code == 200
    (item,) = changed.json()["items"]
    assert (set(item), item["status"]["message"]) == (fields(of), "another message")


async def test_the_summary_of_a_large_job_has_about_a_kilobyte(shared_gateway: Gateway) -> None:
    jobs = jobs_path(f"summaries-{uuid4().hex[:8]}")
    wide = manifest("wide", replicas=400) | {"metadata": {"name": "wide", "annotations": {"notes": "x" * 50_000}}}
    answer = await shared_gateway.client.post(jobs, json=wide)
    assert answer.status_code == 201, answer.text
    unschedulable = JobPendingReason(
        code=PendingCode.UNSCHEDULABLE,
        message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        since=NOW,
        replicas=tuple(f"worker[{rank}]" for rank in range(20)),
        count=399,
    )
    aggregate = dict.fromkeys(ReplicaPhase, 0) | {ReplicaPhase.PENDING: 399, ReplicaPhase.RUNNING: 1}
    status = {"phase": JobPhase.PENDING, "aggregate": aggregate, "pending_reasons": (unschedulable,)}
    await shared_gateway.conclude(answer.json()["uid"], status)
    whole = await shared_gateway.client.get(jobs)
    summary = await shared_gateway.client.get(jobs, params={"view": "summary"})
    assert len(whole.content) > 50_000
    assert len(summary.content) < 1200
