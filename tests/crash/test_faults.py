"""Failures of Postgres and of the API server. Accepted jobs are not lost, and continue without help."""

import asyncio
import signal
from dataclasses import dataclass, field
from functools import partial
from operator import lt
from pathlib import Path

import asyncpg
import httpx2
import pytest

from app.base.faultpoints import FaultPoint
from app.db.postgres.migrations import migrate
from app.embedded_postgres.server import EmbeddedPostgres
from tests.crash.gateways import PATIENCE, client_of, until_ready
from tests.crash.ledger import ledger
from tests.crash.pods import pod_watcher
from tests.crash.stories import Client, cancels, generic_job, pauses, recovers, serves, task
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kube_proxy import KubeProxy, kube_proxy
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

STALE_SECONDS = "3"
PAUSED = {"pause": {"enabled": True}}


async def until_stale(client: Client, name: str, wanted: str) -> httpx2.Response:
    """Wait for the first status of the job that is marked as stale, and return it."""

    async def status() -> httpx2.Response:
        answer = await client.http.get(client.path(name, "status"))
        assert answer.status_code == 200, answer.text
        return answer

    return await until(
        status,
        lambda answer: answer.headers["Jobgate-Stale"] == wanted,
        what=f"stale is {wanted}",
        within=PATIENCE,
    )


@dataclass(slots=True)
class Load:
    """Clients that submit jobs continuously, and the answers that they get."""

    client: Client
    accepted: list[str] = field(default_factory=list)
    refused: list[httpx2.Response] = field(default_factory=list)
    over: bool = False

    async def submit(self, worker: int) -> None:
        number = 0
        while not self.over:
            number += 1
            job = generic_job(f"load-{worker}-{number}", task("worker", "true"), runMode=PAUSED)
            answer = await self.client.http.post(f"/api/v1/namespaces/{self.client.namespace}/jobs", json=job)
            if answer.status_code == 201:
                self.accepted.append(answer.json()["uid"])
            else:
                self.refused.append(answer)
            await asyncio.sleep(0.02)

    async def has_accepted(self, more: int) -> None:
        wanted = len(self.accepted) + more
        await until(lambda: len(self.accepted), lambda number: number >= wanted, within=PATIENCE)

    async def was_refused(self) -> None:
        await until(lambda: self.refused, what="a refusal", within=PATIENCE)


async def test_no_job_is_lost_when_postgres_is_killed_under_load(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, postgres_directory: Path, tmp_path: Path
) -> None:
    with pod_watcher(busy_cluster, crash_namespace) as pods:
        async with EmbeddedPostgres(postgres_directory) as postgres:
            await asyncio.to_thread(migrate, postgres.url)
            async with gateway_process(
                postgres.url, busy_cluster.kubeconfig, tmp_path / "gateway", **STEADY
            ) as gateway:
                await gateway.start()
                async with client_of(gateway, crash_api, crash_namespace) as client:
                    await serves("before", tmp_path).run(client)
                    load = Load(client)
                    stories = [
                        tell(f"under-way-{n}", tmp_path) for n, tell in enumerate((recovers, cancels, pauses) * 2)
                    ]
                    async with asyncio.TaskGroup() as group:
                        for worker in range(4):
                            group.create_task(load.submit(worker))
                        for story in stories:
                            group.create_task(story.run(client))
                        await load.has_accepted(20)
                        await postgres.kill()
                        await load.was_refused()
                        load.refused.append(await client.http.get(client.path("before", "status")))
                        assert (await client.http.get("/livez")).status_code == 200
                        await until_ready(client.http, 503)
                        await postgres.start()
                        await load.has_accepted(20)
                        load.over = True
                    await serves("after", tmp_path).run(client)
                async with ledger(postgres.url, busy_cluster) as book:
                    await book.settled(*(story.name for story in stories))
                    for story in stories:
                        await book.check_history(story.uid)
                        await pods.until_seen(story.uid, story.attempts)
                assert await gateway.stop() == 0
            assert set(load.accepted) <= await stored_uids(postgres.url)
        assert not pods.doubles()
    for answer in load.refused:
        assert answer.status_code == 503, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "DatabaseUnavailable"


async def stored_uids(database_url: str) -> set[str]:
    connection = await asyncpg.connect(database_url)
    rows = await connection.fetch("SELECT uid::text FROM jobs")
    await connection.close()
    return {row["uid"] for row in rows}


@pytest.mark.parametrize("fault", ["refuse", "hang"])
async def test_no_job_is_lost_when_the_api_server_goes_away(
    fault: str,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    async with kube_proxy(busy_cluster) as proxy:
        kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")
        async with gateway_process(
            database_url, kubeconfig, tmp_path / "gateway", JOBGATE_STALE_AFTER=STALE_SECONDS
        ) as gateway:
            await gateway.start()
            async with client_of(gateway, crash_api, crash_namespace) as client:
                await serves("before", tmp_path).run(client)
                fresh = await until_stale(client, "before", "false")
                getattr(proxy, fault)()
                story = serves("meanwhile", tmp_path)
                story.uid = (await client.submit(story.manifest))["uid"]
                stale = await until_stale(client, "before", "true")
                assert stale.json()["status"]["phase"] == "Succeeded"
                assert stale.headers["Jobgate-Observed-At"] >= fresh.headers["Jobgate-Observed-At"]
                assert (await client.status("meanwhile"))["phase"] in ("Queued", "Creating")
                await until_ready(client.http, 200)
                proxy.heal()
                await client.until("meanwhile", "Succeeded")
                await until_stale(client, "before", "false")
            async with ledger(database_url, busy_cluster) as book:
                await book.settled()
                await book.check_history(story.uid)


async def lose_and_run(proxy: KubeProxy, client: Client, request: str, name: str, directory: Path) -> str:
    proxy.lose(request)
    story = serves(name, directory)
    await story.run(client)
    # A job can end before its last pod is released.
    await until(lambda: proxy.lost, what="an answer is lost", within=PATIENCE)
    return story.uid


@pytest.mark.parametrize(
    "request_line",
    ["^POST .*/pods[? ]", "^POST .*/configmaps[? ]", "^POST .*/services[? ]", "^PATCH .*/pods/"],
    ids=["pod", "anchor", "service", "release"],
)
async def test_a_write_whose_answer_is_lost_is_executed_once(
    request_line: str,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    with pod_watcher(busy_cluster, crash_namespace) as pods:
        async with kube_proxy(busy_cluster) as proxy:
            kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")
            async with (
                gateway_process(database_url, kubeconfig, tmp_path / "gateway", **STEADY) as gateway,
                ledger(database_url, busy_cluster) as book,
            ):
                await gateway.start()
                async with client_of(gateway, crash_api, crash_namespace) as client:
                    await serves("first", tmp_path).run(client)
                    await book.settled()  # from here on, only the next write can be lost
                    uid = await lose_and_run(proxy, client, request_line, "unlucky", tmp_path)
                await book.settled()
                await book.check_history(uid)
        await pods.until_seen(uid, {("worker", 0): 1, ("worker", 1): 1})
        assert not pods.doubles()


async def test_a_submission_whose_answer_is_lost_creates_one_job(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    """The gateway dies between commit and answer. The client repeats the request with the same key."""
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway") as gateway:
        await gateway.start()
        front = Cluster(kubeconfig=tmp_path, url=gateway.url, token="", tls=None, real=False)
        async with kube_proxy(front) as proxy, httpx2.AsyncClient(base_url=proxy.url, timeout=60) as http:
            client = Client(http=http, api=crash_api, namespace=crash_namespace)
            uids = []
            for number in range(3):
                proxy.lose("^POST .*/jobs ")
                async with asyncio.TaskGroup() as group:
                    submitting = group.create_task(client.submit(serves(f"once-{number}", tmp_path).manifest))
                    await until(lambda: len(proxy.lost), partial(lt, number), what="a lost answer", within=PATIENCE)
                    await gateway.kill()
                    await gateway.start()
                uids.append(submitting.result()["uid"])
            for number in range(3):
                await client.until(f"once-{number}", "Succeeded")
    assert await stored_uids(database_url) == set(uids)


@pytest.mark.parametrize("point", [FaultPoint.SUBMISSION_ARRIVED, FaultPoint.SUBMISSION_STORED])
async def test_a_list_whose_answer_is_lost_creates_each_job_once(
    point: FaultPoint,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    """The gateway dies before or after the commit. The client repeats the request with the same key."""
    names = [f"together-{number}" for number in range(5)]
    items = [serves(name, tmp_path).manifest for name in names]
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway") as gateway:
        await gateway.start({"JOBGATE_FAULT_POINTS": f"{point}:1"})
        async with client_of(gateway, crash_api, crash_namespace) as client, asyncio.TaskGroup() as group:
            submitting = group.create_task(client.submit({"apiVersion": "v1", "kind": "List", "items": items}))
            assert await gateway.ended(within=PATIENCE) == -signal.SIGKILL
            there = await stored_uids(database_url)
            assert len(there) == (len(items) if point is FaultPoint.SUBMISSION_STORED else 0)
            await gateway.start()
            submitted = (await submitting)["items"]
            for name in names:
                await client.until(name, "Succeeded")
    assert [item["name"] for item in submitted] == names
    stored = await stored_uids(database_url)
    assert stored == {item["uid"] for item in submitted}
    assert there <= stored
