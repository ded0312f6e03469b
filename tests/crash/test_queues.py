"""SIGKILL around each write to a Workload: no job is lost, no pod is created twice, and no quota stays in use."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from app.base.faultpoints import FaultPoint as At
from tests.behaviour.client import DEADLINE, Jobs
from tests.behaviour.manifests import job, until_marked
from tests.behaviour.queues.kueue import Queues, has_kueue, queued, queues_of, requesting
from tests.crash.pods import pod_watcher
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import GatewayProcess, answering, gateway_process, insist
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

OF_QUEUES = frozenset({At.WORKLOAD_CREATED, At.WORKLOAD_BEFORE_WRITE, At.WORKLOAD_WRITTEN, At.POD_UNGATED})
# The writes of a story: a start, the quota that is given back, another start, ends and removals.
KILLS = (
    (At.WORKLOAD_CREATED, 1),
    (At.WORKLOAD_CREATED, 2),
    (At.WORKLOAD_BEFORE_WRITE, 2),
    (At.WORKLOAD_WRITTEN, 2),
    (At.WORKLOAD_WRITTEN, 4),
    (At.POD_UNGATED, 1),
)
SIGKILLED = -9


def test_every_fault_point_of_queues_has_a_round() -> None:
    assert {point for point, _ in KILLS} == OF_QUEUES


@pytest_asyncio.fixture
async def gateway(busy_cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway") as process:
        await process.start()
        yield process


async def submit(queues: Queues, name: str, script: str, *, high: bool = False) -> str:
    manifest = queued(job(name, requesting(script)), "team", queues.priority_class if high else None)
    jobs = queues.jobs
    # A repeated submission is answered 409, because the name is taken.
    await insist(jobs.http, "POST", jobs.path("").rstrip("/"), json=manifest)
    return str((await answering(jobs.http, jobs.path(name))).json()["uid"])


async def until_phase(jobs: Jobs, name: str, phase: str) -> None:
    async def read() -> str:
        return str((await answering(jobs.http, jobs.path(name, "status"))).json()["status"]["phase"])

    await until(read, lambda found: found == phase, what=f"{name} is {phase}", within=DEADLINE, every=0.1)


async def tell(queues: Queues, name: str, mark: Path) -> None:
    """A job is preempted by another one, comes back, and both end and are removed."""
    jobs, low, high = queues.jobs, f"low-{name}", f"high-{name}"
    uids = [await submit(queues, low, until_marked(mark, "exit 0"))]
    await until_phase(jobs, low, "Running")
    uids.append(await submit(queues, high, "exit 0", high=True))
    await until_phase(jobs, high, "Succeeded")
    mark.touch()
    await until_phase(jobs, low, "Succeeded")
    for one in (low, high):
        await insist(jobs.http, "DELETE", jobs.path(one))
    for uid in uids:
        await jobs.kube.gone(queues.path(uid), within=DEADLINE)


async def test_no_job_is_lost_and_no_quota_stays_in_use(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, gateway: GatewayProcess, tmp_path: Path
) -> None:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=30) as http:
        jobs = Jobs(http=http, kube=crash_api, namespace=crash_namespace)
        if not await has_kueue(jobs):
            pytest.skip("the cluster has no Kueue")
        with pod_watcher(busy_cluster, crash_namespace) as pods:
            async with queues_of(jobs, cpu=1) as queues:
                # Kueue gates all pods of the namespace.
                await queues.add_local("default")
                for number, (point, passing) in enumerate(KILLS):
                    await gateway.kill()
                    await gateway.start({"JOBGATE_FAULT_POINTS": f"{point}:{passing}"})
                    async with asyncio.TaskGroup() as group:
                        group.create_task(tell(queues, str(number), tmp_path / f"go-{number}"))
                        assert await gateway.ended(within=DEADLINE, what=f"{point}:{passing}") == SIGKILLED
                        await gateway.start()
                await queues.until_unused()
                await queues.until_no_workload()
            assert not pods.doubles()
