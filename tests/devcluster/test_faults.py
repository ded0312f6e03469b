"""Injected faults: each rule has its effect on the requests that it matches, and on no others."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.conformance.manifests import config_map
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def faulty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_embedded_cluster(tmp_path_factory.mktemp("faulty"), "--nodes", "0") as cluster:
        yield cluster


@pytest_asyncio.fixture
async def faulty(faulty_cluster: Cluster) -> AsyncIterator[KubeClient]:
    async with connect(faulty_cluster) as client:
        yield client
        (await client.delete("/devcluster/faults")).ok()


async def inject(api: KubeClient, **rule: Any) -> None:
    (await api.post("/devcluster/faults", rule)).ok()


def fresh() -> dict[str, Any]:
    return config_map(f"c-{secrets.token_hex(4)}")


async def test_a_rule_ends_after_its_count(faulty: KubeClient) -> None:
    await inject(faulty, verb="create", resource="configmaps", status=429, retryAfter=3, count=2)
    body = fresh()
    for _ in range(2):
        answer = await faulty.post(MAPS, body)
        answer.refused(429, "TooManyRequests")
        assert answer.headers["Retry-After"] == "3"
    (await faulty.post(MAPS, body)).ok()
    rules = (await faulty.get("/devcluster/faults")).ok()["items"]
    assert [rule["hits"] for rule in rules] == [2]


async def test_a_rule_hits_matching_requests_only(faulty: KubeClient) -> None:
    await inject(faulty, verb="get", resource="configmaps", namespace="default", name="mine", status=503)
    assert (await faulty.get(f"{MAPS}/mine")).status == 503
    assert (await faulty.get(f"{MAPS}/other")).status == 404
    assert (await faulty.get("/api/v1/namespaces/kube-system/configmaps/mine")).status == 404
    assert (await faulty.delete(f"{MAPS}/mine")).status == 404


async def test_delay(faulty: KubeClient) -> None:
    await inject(faulty, verb="list", resource="configmaps", delayMs=300)
    loop = asyncio.get_running_loop()
    before = loop.time()
    (await faulty.get(MAPS)).ok()
    assert loop.time() - before >= 0.3


async def test_a_request_with_a_lost_response_takes_effect(faulty: KubeClient) -> None:
    await inject(faulty, verb="create", resource="configmaps", loseResponse=True, count=1)
    body = fresh()
    with pytest.raises(aiohttp.ClientError):
        await faulty.post(MAPS, body)
    (await faulty.post(MAPS, body)).refused(409, "AlreadyExists")


async def test_watch_cut_inside_a_line(faulty: KubeClient) -> None:
    await inject(faulty, verb="watch", resource="configmaps", cutAfter=1, count=1)
    start = (await faulty.get(MAPS)).ok()["metadata"]["resourceVersion"]
    async with faulty.watch(MAPS, resourceVersion=start) as watch:
        (await faulty.post(MAPS, fresh())).ok()
        assert (await watch.next())["type"] == "ADDED"
        (await faulty.post(MAPS, fresh())).ok()
        with pytest.raises((AssertionError, aiohttp.ClientError)):
            await watch.next()


async def test_silent_watch(faulty: KubeClient) -> None:
    await inject(faulty, verb="watch", resource="configmaps", silentAfter=0, count=1)
    async with faulty.watch(MAPS) as watch:
        (await faulty.post(MAPS, fresh())).ok()
        with pytest.raises(TimeoutError):
            await watch.next(timeout=0.5)


@pytest.mark.parametrize(("kind", "seen"), [("event", 200), ("http", 410)])
async def test_gone(faulty: KubeClient, kind: str, seen: int) -> None:
    await inject(faulty, verb="watch", resource="configmaps", gone=kind, count=1)
    answer = await faulty.get(MAPS, watch="true", resourceVersion="1", timeoutSeconds="1")
    assert answer.status == seen
    status = answer.body["object"] if kind == "event" else answer.body
    assert (status["code"], status["reason"]) == (410, "Expired")


async def test_compaction(faulty: KubeClient) -> None:
    old = (await faulty.post(MAPS, fresh())).ok()["metadata"]["resourceVersion"]
    (await faulty.post(MAPS, fresh())).ok()
    page = (await faulty.get(MAPS, limit="1")).ok()["metadata"]["continue"]
    (await faulty.post("/devcluster/compact", {})).ok()
    answer = await faulty.get(MAPS, watch="true", resourceVersion=old, timeoutSeconds="1")
    assert answer.body["type"] == "ERROR"
    assert answer.body["object"]["message"].startswith(f"too old resource version: {old} (")
    (await faulty.get(MAPS, **{"limit": "1", "continue": page})).refused(410, "Expired")
    now = (await faulty.get(MAPS)).ok()["metadata"]["resourceVersion"]
    async with faulty.watch(MAPS, resourceVersion=now) as watch:
        (await faulty.post(MAPS, fresh())).ok()
        assert (await watch.next())["type"] == "ADDED"


async def test_a_rule_with_a_typo_is_refused(faulty: KubeClient) -> None:
    answer = await faulty.post("/devcluster/faults", {"verbs": "get"})
    assert "verbs" in answer.refused(400, "BadRequest")


async def test_faults_need_the_token(faulty_cluster: Cluster) -> None:
    connector = aiohttp.TCPConnector(ssl=faulty_cluster.tls or True)
    async with aiohttp.ClientSession(connector=connector) as session:
        answer = await session.get(f"{faulty_cluster.url}/devcluster/faults")
        assert answer.status == 401


async def test_a_slow_watch_is_told_to_start_again(tmp_path: Path) -> None:
    with running_embedded_cluster(tmp_path, "--nodes", "0", "--watch-window", "5") as cluster:
        async with connect(cluster) as api:
            start = (await api.get(MAPS)).ok()["metadata"]["resourceVersion"]
            for _ in range(20):
                (await api.post(MAPS, fresh())).ok()
            answer = await api.get(MAPS, watch="true", resourceVersion=start, timeoutSeconds="1")
            assert answer.body["object"]["code"] == 410
