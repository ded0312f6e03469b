"""Freezes of each part, shorter and longer than a lease, while jobs start and end: no job is lost or stuck.

                         ┌─ one gateway ──┐
stories, before each ─▶  │                ├─▶ PostgreSQL, its disk, the API server, the networks between: one freezes
                         └─ two gateways ─┘

A freeze ends after its duration; a long one not before the gateways have noticed it. A gateway has recovered when it is
ready and has run a job that was submitted after the freeze.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.crash import freezing_parts
from tests.crash.freezing_parts import Scene
from tests.crash.gateways import PATIENCE
from tests.crash.ledger import ledger
from tests.crash.pods import PodWatcher, pod_watcher
from tests.crash.stories import Client, Story, cancels, recovers, serves
from tests.support.clusters.kube import Cluster, connect
from tests.support.gateways.process import GatewayProcess, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash]

CLIENT_SECONDS = 10.0  # after which a client repeats a request

Fault = Callable[[Cluster, Path], AbstractAsyncContextManager[Scene]]

FAULTS: Sequence[Fault] = (
    freezing_parts.postgres,
    freezing_parts.disk,
    freezing_parts.api_server,
    freezing_parts.network_to_postgres,
    freezing_parts.network_to_cluster,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Durations in seconds. A freeze of at least `noticed_after` also lasts until the gateways have noticed it."""

    freezes: Sequence[float]
    noticed_after: float
    settings: Mapping[str, str]


# Durations relative to the lease of 15 s and to the timeouts that go with it.
FULL = Scale(
    freezes=(5, 20, 30, 60, 120),
    noticed_after=60,
    settings={"JOBGATE_LEASE_SECONDS": "15", "JOBGATE_REQUEST_TIMEOUT": "5"},
)
# The lease expires after 3 s, a status is stale after 6 s, a controller may give its lease away after 12 s, and work
# that outlives the lease ends the process after 13 s. Each freeze is a little longer than some of these. Their number
# is even, so that a network loses the bytes of each direction in a long one.
QUICK = Scale(
    freezes=(1, 4, 7, 15),
    noticed_after=12,
    settings={
        "JOBGATE_LEASE_SECONDS": "3",
        "JOBGATE_REQUEST_TIMEOUT": "1",
        "JOBGATE_DATABASE_TIMEOUT": "2",
        "JOBGATE_STALE_AFTER": "6",
    },
)


@dataclass(slots=True, kw_only=True)
class Stack:
    """Gateways that share a database. The stories use the last of them."""

    gateways: list[GatewayProcess]
    https: list[httpx2.AsyncClient]
    client: Client
    pods: PodWatcher
    direct_url: str
    cluster: Cluster
    directory: Path
    stories: list[Story] = field(default_factory=list)

    async def begin(self, group: asyncio.TaskGroup, number: int) -> None:
        """Start the stories of this freeze, and return when the first job is stored."""
        new_stories = [tell(f"{tell.__name__}-{number}", self.directory) for tell in (recovers, cancels)]
        self.stories += new_stories
        for story in new_stories:
            group.create_task(story.run(self.client))
        await until(lambda: any(story.uid for story in new_stories), what="a job is stored", within=PATIENCE)

    async def notices(self, *, blinds: bool) -> None:
        """Wait until every gateway reports the failure: stale statuses, or not ready."""
        path = "/readyz" if not blinds else self.client.path("before", "status")
        for http in self.https:
            await until(partial(_says_so, http, path), what="a report of the failure", within=PATIENCE)

    async def recovers(self, number: int) -> None:
        story = serves(f"after-{number}", self.directory)
        self.stories.append(story)
        await story.run(self.client)
        for http in self.https:
            await until(partial(_is_ready, http), what="the gateway is ready", within=PATIENCE)

    async def check(self) -> None:
        """Require that each story ended once as expected, and that each gateway stops gracefully."""
        async with ledger(self.direct_url, self.cluster) as book:
            await book.settled()
            for story in self.stories:
                await book.check_history(story.uid)
                await self.pods.until_seen(story.uid, story.attempts)
        assert not self.pods.doubles()
        for gateway in self.gateways:
            assert await gateway.stop() == 0, gateway.log.read_text()


async def _says_so(http: httpx2.AsyncClient, path: str) -> bool:
    try:
        answer = await http.get(path)
    except httpx2.TransportError:
        return False
    return answer.status_code == 503 if path == "/readyz" else answer.headers.get("Jobgate-Stale") == "true"


async def _is_ready(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).status_code == 200
    except httpx2.TransportError:
        return False


@asynccontextmanager
async def stack_of(
    count: int, scene: Scene, place: int, directory: Path, settings: Mapping[str, str]
) -> AsyncIterator[Stack]:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(connect(scene.cluster))
        namespace = f"freeze-{secrets.token_hex(4)}"
        (await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).ok()
        await api.eventually(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", bool)
        pods = stack.enter_context(pod_watcher(scene.cluster, namespace))
        gateways, https = [], []
        for number in range(count):
            url, kubeconfig = scene.database_urls[place], scene.kubeconfigs[place]
            process = gateway_process(url, kubeconfig, directory / f"gateway-{number}", **settings)
            gateways.append(await stack.enter_async_context(process))
            await gateways[-1].start()
            http = httpx2.AsyncClient(base_url=gateways[-1].url, timeout=CLIENT_SECONDS)
            https.append(await stack.enter_async_context(http))
        client = Client(http=https[-1], api=api, namespace=namespace)
        yield Stack(
            gateways=gateways,
            https=https,
            client=client,
            pods=pods,
            direct_url=scene.direct_urls[place],
            cluster=scene.cluster,
            directory=directory,
        )
        await api.delete(f"/api/v1/namespaces/{namespace}")


async def freeze(scene: Scene, stacks: Sequence[Stack], number: int, seconds: float, scale: Scale) -> float:
    """Freeze once while jobs run. Return the seconds from the thaw until all gateways have recovered."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as stories:
        for stack in stacks:
            await stack.begin(stories, number)
        async with scene.freeze(number):
            await asyncio.sleep(seconds)
            if seconds >= scale.noticed_after:
                await asyncio.gather(*(stack.notices(blinds=scene.blinds) for stack in stacks))
        thawed = loop.time()
        await asyncio.gather(*(stack.recovers(number) for stack in stacks))
        return loop.time() - thawed


async def stop_while_frozen(scene: Scene, stack: Stack, number: int) -> None:
    """Stop one gateway during a freeze. It exits, and the other one continues."""
    async with scene.freeze(number):
        status = await stack.gateways.pop(0).stop()
        stack.https.pop(0)
    assert status == 0, status
    await stack.recovers(number)


async def survive(fault: Fault, scale: Scale, cluster: Cluster, directory: Path) -> str:
    """Freeze for each duration, and return a report of the recovery times."""
    async with (
        fault(cluster, directory) as scene,
        stack_of(1, scene, 0, directory / "one", scale.settings) as one,
        stack_of(2, scene, 1, directory / "two", scale.settings) as two,
    ):
        for stack in (one, two):
            (stack.directory / "marks").mkdir()
            stack.directory /= "marks"
            await serves("before", stack.directory).run(stack.client)
        recovered = [
            await freeze(scene, (one, two), number, seconds, scale) for number, seconds in enumerate(scale.freezes)
        ]
        await stop_while_frozen(scene, two, len(recovered))
        await asyncio.gather(one.check(), two.check())
    freezes = (len(recovered) + 1) * 2 - 1
    jobs = len(one.stories) + len(two.stories)
    return f"froze {freezes} times, jobs {jobs}, lost 0, wedged 0, recovered in at most {max(recovered):.0f} s"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_no_job_is_lost_when_a_part_freezes(
    fault: Fault, busy_cluster: Cluster, tmp_path: Path, prove: Callable[[str], None]
) -> None:
    prove(f"freeze suite, {fault.__name__}: {await survive(fault, QUICK, busy_cluster, tmp_path)}")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_no_job_is_lost_when_a_part_freezes_for_the_full_durations(
    fault: Fault, busy_cluster: Cluster, tmp_path: Path, prove: Callable[[str], None]
) -> None:
    prove(f"freeze suite at full length, {fault.__name__}: {await survive(fault, FULL, busy_cluster, tmp_path)}")
