"""SIGKILL at every step of SampleSets and SampleJobs. Each still ends as expected, and no operation runs twice.

stories: create ─▶ sync ─▶ jobs ─▶ scale, edit ─▶ delete     clients that repeat unanswered requests
kills:   start, armed ─▶ dies at its fault point ─▶ start, armed with the next ─▶ …
servers: inside the test, on their own nodes; they count the jobs that they receive
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx2
import pytest

from app.base.faultpoints import FaultPoint as At
from app.db.postgres.migrations import migrate
from app.embedded_postgres.server import EmbeddedPostgres
from tests.crash.gateways import until_ready
from tests.crash.runtime_pods import RuntimeNodes, runtime_nodes, volume_secret
from tests.crash.sample_stories import (
    ACCESS,
    OF_SAMPLES,
    SECRET,
    SampleClient,
    SampleLedger,
    SampleStory,
    is_dropped,
    lives,
    mends,
)
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process
from tests.support.verification import assert_invariants
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

Telling = Callable[[str], SampleStory]

# Fault point, at which of its occurrences the gateway dies, and the stories that reach it.
KILLS: Sequence[tuple[At, int, Sequence[Telling]]] = (
    (At.SAMPLE_STORED, 1, (lives,)),
    (At.SAMPLE_DECIDED, 2, (mends,)),
    (At.SAMPLE_PERSISTED, 1, (is_dropped,)),
    (At.SAMPLE_OBJECT_CREATED, 2, ()),
    (At.SAMPLE_POSTED, 1, ()),
    (At.NODE_LABELLED, 1, ()),
    (At.SAMPLE_STORED, 1, ()),
    (At.SAMPLE_TERMINATED, 1, ()),
    (At.SAMPLE_POSTED, 1, ()),
    (At.SAMPLE_OBJECT_DELETED, 2, ()),
    (At.SAMPLE_PERSISTED, 3, ()),
)
KILL_SECONDS = 280.0
SIGKILLED = -9
SETTINGS = {
    **STEADY,
    "JOBGATE_RUNTIME_IMAGE": "example.com/runtime:1",
    "JOBGATE_RUNTIME_ACCESS": "pod-address",
}


def test_every_fault_point_of_samples_has_a_round() -> None:
    assert {point for point, _, _ in KILLS} == OF_SAMPLES


@pytest.fixture
async def nodes(crash_api: KubeClient, crash_namespace: str) -> AsyncIterator[RuntimeNodes]:
    await volume_secret(crash_api, crash_namespace, **{"access-key": ACCESS, "secret-key": SECRET})
    async with runtime_nodes(crash_api, crash_namespace) as found:
        yield found


@asynccontextmanager
async def client_of(gateway: GatewayProcess, nodes: RuntimeNodes) -> AsyncIterator[SampleClient]:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=30) as http:
        yield SampleClient(http=http, api=nodes.api, namespace=nodes.namespace, secret="volume", spec=nodes.spec)


@asynccontextmanager
async def sample_ledger(database_url: str, cluster: Cluster) -> AsyncIterator[SampleLedger]:
    """Yield the ledger of a database. Afterwards, the invariants hold there and in the cluster."""
    connection = await asyncpg.connect(database_url, timeout=90)
    try:
        yield SampleLedger(connection)
        await assert_invariants(database_url, cluster)
    finally:
        await connection.close(timeout=60)


async def test_no_sample_set_is_lost_and_no_operation_runs_twice(
    busy_cluster: Cluster, nodes: RuntimeNodes, database_url: str, tmp_path: Path, prove: Callable[[str], None]
) -> None:
    stories = [
        [tell(f"{tell.__name__.replace('_', '-')}-{number}") for tell in tellings]
        for number, (_, _, tellings) in enumerate(KILLS)
    ]
    everyone = [story for some in stories for story in some]
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway", **SETTINGS) as gateway:
        await gateway.start()
        async with client_of(gateway, nodes) as client, sample_ledger(database_url, busy_cluster) as book:
            async with asyncio.TaskGroup() as group:
                await gateway.kill()
                for number, (point, passing, _) in enumerate(KILLS):
                    await book.end_lease()
                    gateway.launch({"JOBGATE_FAULT_POINTS": f"{point}:{passing}"})
                    for story in stories[number]:
                        group.create_task(story.run(client))
                    status = await gateway.ended(within=KILL_SECONDS, what=f"{point}:{passing} is reached")
                    assert status == SIGKILLED, gateway.log.read_text()
                await book.end_lease()
                await gateway.start()
            await book.settled()
            assert await gateway.stop() == 0
            await book.check(everyone, nodes)
    kills = len(KILLS) + 1
    prove(f"crash suite: kills {kills}, sets {len(everyone)}, uploads {len(nodes.uploads)}, losses 0, doubles 0")


async def test_another_controller_takes_over_sets_and_jobs_in_progress(
    busy_cluster: Cluster, nodes: RuntimeNodes, database_url: str, tmp_path: Path
) -> None:
    """The old controller is thawed after its lease, and writes nothing."""
    config, stories = busy_cluster.kubeconfig, [lives("lives"), mends("mends")]
    async with (
        gateway_process(database_url, config, tmp_path / "old", **SETTINGS) as old,
        gateway_process(database_url, config, tmp_path / "new", **SETTINGS) as new,
        sample_ledger(database_url, busy_cluster) as book,
    ):
        await old.start()
        epoch = await book.until_held(old.pid)
        await new.start()
        async with client_of(new, nodes) as client, asyncio.TaskGroup() as group:
            for story in stories:
                group.create_task(story.run(client))
            await nodes.until_given("sync")
            old.freeze()
            await book.end_lease()
            assert await book.until_held(new.pid) > epoch
            old.thaw()
        await book.settled()
        await book.check(stories, nodes)
        assert [await old.stop(), await new.stop()] == [0, 0]


async def test_a_set_completes_after_the_cluster_and_the_database_went_away(
    busy_cluster: Cluster, nodes: RuntimeNodes, postgres_directory: Path, tmp_path: Path
) -> None:
    stories = [lives("lives"), mends("mends")]
    async with kube_proxy(busy_cluster) as proxy, EmbeddedPostgres(postgres_directory) as postgres:
        await asyncio.to_thread(migrate, postgres.url)
        config = proxy.kubeconfig(tmp_path / "kubeconfig")
        settings = SETTINGS | {"JOBGATE_STALE_AFTER": "3"}
        async with gateway_process(postgres.url, config, tmp_path / "gateway", **settings) as gateway:
            await gateway.start()
            async with client_of(gateway, nodes) as client, asyncio.TaskGroup() as group:
                for story in stories:
                    group.create_task(story.run(client))
                await nodes.until_given("sync")
                proxy.refuse()
                await _is_stale(client, "lives")
                proxy.heal()
                await nodes.until_given("warmup")
                await postgres.kill()
                await until_ready(client.http, 503)
                await postgres.start()
                await until_ready(client.http)
            async with sample_ledger(postgres.url, busy_cluster) as book:
                await book.settled()
                await book.check(stories, nodes)
            assert await gateway.stop() == 0


async def _is_stale(client: SampleClient, name: str) -> None:
    await until(
        lambda: client.http.get(client.path("samplesets", name)),
        lambda answer: answer.headers.get("Jobgate-Stale") == "true",
        what="a stale status",
        within=KILL_SECONDS,
    )
