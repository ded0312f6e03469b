"""Jobs with many replicas: answers have a bounded size, and no step blocks the event loop for long."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.domain.kinds.generic_job.native import LISTED_REPLICAS
from app.domain.plan import Rank
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, ReplicaPhase
from app.services.reading.manifests import PAGE_BYTES
from bench.memory import paused_job
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest

MANY = 10_000
# Far more than the intended 50 ms, because the machine may be busy, and far less than rendering all pods takes.
MAX_ITERATION_SECONDS = 1.0


@asynccontextmanager
async def short_iterations() -> AsyncIterator[None]:
    """Check that no iteration of the event loop takes long, in CPU time of this thread: other load has no effect."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        yield
        watching.cancel()
    assert longest < MAX_ITERATION_SECONDS


async def dry_run(gateway: Gateway, document: Any) -> Any:
    answer = await gateway.client.post(jobs_path(NAMESPACE), params={"dryRun": "All"}, json=document)
    assert len(answer.content) < PAGE_BYTES + 2 * 1024 * 1024
    return answer


async def test_a_dry_run_of_many_replicas_shows_the_first_ones(gateway: Gateway) -> None:
    async with short_iterations():
        answer = (await dry_run(gateway, paused_job("large", MANY))).json()
    assert answer["plan"]["tasks"][0]["replicas"] == len(answer["plan"]["pods"]) == MANY
    names = [item["metadata"]["name"] for item in answer["manifests"] if item["kind"] == "Pod"]
    assert names == answer["plan"]["pods"][: len(names)]
    assert len(names) > 10
    assert answer["manifestsOmitted"] + len(answer["manifests"]) == MANY + 1


async def test_a_list_is_bounded_by_the_sum_of_its_replicas(gateway: Gateway) -> None:
    items = [paused_job(f"large-{number}", MANY) for number in range(30)]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    async with short_iterations():
        refused = [await dry_run(gateway, document), await gateway.client.post(jobs_path(NAMESPACE), json=document)]
    for answer in refused:
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/items", "TooManyReplicas")
        assert "the first 3 valid ones of the 30 manifests have 30000 replicas" in error["detail"]
        assert error["accepted"] == "20000 replicas or fewer in one List"
    assert (await gateway.client.get(jobs_path(NAMESPACE))).json()["items"] == []


async def test_the_total_size_of_the_pods_of_a_job_is_bounded(gateway: Gateway) -> None:
    for answer in (
        await dry_run(gateway, paused_job("large", MANY, ranked_bytes=60_000)),
        await gateway.client.post(jobs_path(NAMESPACE), json=paused_job("large", MANY, ranked_bytes=60_000)),
    ):
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/spec", "JobTooLarge")
        assert error["accepted"].startswith(f"{256 * 1024 * 1024} bytes or fewer")


async def pages(gateway: Gateway, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    token: str | None = ""
    while token is not None:
        answer = await gateway.client.get(path, params={**query, **({"pageToken": token} if token else {})})
        assert answer.status_code == 200, answer.text
        assert len(answer.content) < PAGE_BYTES + 1024
        found.append(answer.json()["items"])
        token = answer.json()["nextPageToken"]
    return found


async def test_pages_of_manifests_have_a_bounded_size(gateway: Gateway) -> None:
    await gateway.client.post(jobs_path(NAMESPACE), json=paused_job("large", 300))
    path = jobs_path(NAMESPACE, "large/manifests")
    async with short_iterations():
        found = await pages(gateway, path, pageSize=500)
    assert len(found) > 1
    names = [item["metadata"]["name"] for page in found for item in page if item["kind"] == "Pod"]
    assert names == [f"large-worker-{rank}" for rank in range(300)]
    assert found[0][0]["kind"] == "ConfigMap"


async def test_manifests_are_filtered_by_task(gateway: Gateway) -> None:
    document = manifest("two")
    (task,) = document["spec"]["replicaSpecs"]
    document["spec"]["replicaSpecs"] = [{**task, "type": kind, "replicas": 3} for kind in ("chief", "worker")]
    document["spec"]["service"] = {"ports": [{"name": "main", "port": 7000}]}
    assert (await gateway.client.post(jobs_path(NAMESPACE), json=document)).status_code == 201
    path = jobs_path(NAMESPACE, "two/manifests")
    whole = [item for page in await pages(gateway, path) for item in page]
    last = [item for item in whole if item["metadata"]["name"].startswith("two-worker-")]
    assert len(last) == 6
    for size in (1, 2, 5):
        assert [item for page in await pages(gateway, path, pageSize=size) for item in page] == whole
        of_task = [item for page in await pages(gateway, path, pageSize=size, task="worker") for item in page]
        assert of_task == last
    assert await pages(gateway, path, task="none") == [[]]


@pytest.mark.timeout(300)
async def test_many_replicas_are_read_in_pages(gateway: Gateway) -> None:
    uid = (await gateway.client.post(jobs_path(NAMESPACE), json=paused_job("large", MANY))).json()["uid"]
    replicas = [Replica(key=Rank("worker", rank), attempt=Attempt(number=1)) for rank in range(MANY)]
    aggregate = dict.fromkeys(ReplicaPhase, 0) | {ReplicaPhase.CREATING: MANY}
    await gateway.conclude(uid, {"phase": JobPhase.PAUSED, "aggregate": aggregate}, replicas=replicas)
    async with short_iterations():
        found = await pages(gateway, jobs_path(NAMESPACE, "large/replicas"), pageSize=500, task="worker")
        job = (await gateway.client.get(jobs_path(NAMESPACE, "large"))).json()
        listed = (await gateway.client.get(jobs_path(NAMESPACE))).json()["items"]
    assert [item["rank"] for page in found for item in page] == list(range(MANY))
    assert await pages(gateway, jobs_path(NAMESPACE, "large/replicas"), phase="Running") == [[]]
    (task,) = job["nativeStatus"]["tasks"]
    assert len(task["replicas"]) == LISTED_REPLICAS
    assert task["replicasOmitted"] == MANY - LISTED_REPLICAS
    assert listed == [job]
