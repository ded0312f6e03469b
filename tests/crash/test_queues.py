"""SIGKILL around each write to a Workload, and at each step of a scale-up.

No job is lost, no pod is created twice or without admission, and no quota stays in use.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path

import pytest

from app.base.faultpoints import FaultPoint as At
from tests.behaviour.client import DEADLINE, Jobs
from tests.behaviour.manifests import Body, job, until_marked
from tests.behaviour.queues.kueue import Queues, elastic_job, queued, requesting
from tests.crash.queues import watched_queues
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import GatewayProcess, answering, insist
from tests.support.verification import assert_invariants
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
# The steps of a scale-up that waits in its queue, and those after its admission.
WAITS = (At.DECIDED, At.PERSISTED, At.WORKLOAD_CREATED)
STARTS = (At.POD_BEFORE_CREATE, At.POD_CREATED, At.POD_UNGATED, At.WORKLOAD_BEFORE_WRITE, At.WORKLOAD_WRITTEN)
# A scale-down, whose further Workload is removed. Its pod is released at any time after its end.
LEAVES = (At.POD_DELETED, At.WORKLOAD_BEFORE_WRITE, At.WORKLOAD_WRITTEN)
SIGKILLED = -9


def test_every_fault_point_of_queues_has_a_round() -> None:
    assert {point for point, _ in KILLS} == OF_QUEUES


async def submit(queues: Queues, name: str, script: str, *, high: bool = False) -> str:
    return await post(
        queues.jobs, queued(job(name, requesting(script)), "team", queues.priority_class if high else None)
    )


async def post(jobs: Jobs, manifest: Body) -> str:
    # A repeated submission is answered 409, because the name is taken.
    await insist(jobs.http, "POST", jobs.path("").rstrip("/"), json=manifest)
    return str((await answering(jobs.http, jobs.path(manifest["metadata"]["name"]))).json()["uid"])


async def until_phase(jobs: Jobs, name: str, phase: str) -> None:
    async def read() -> str:
        return str((await answering(jobs.http, jobs.path(name, "status"))).json()["status"]["phase"])

    await until(read, lambda found: found == phase, what=f"{name} is {phase}", within=DEADLINE)


async def scale(jobs: Jobs, name: str, collectors: int) -> None:
    # A repeated request changes nothing.
    body = {"replicas": collectors, "task": "collector"}
    await insist(jobs.http, "POST", jobs.path(name, "scale"), json=body)


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
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    gateway: GatewayProcess,
    tmp_path: Path,
) -> None:
    async with watched_queues(busy_cluster, crash_api, crash_namespace, gateway, cpu=1) as (queues, _):
        for number, (point, passing) in enumerate(KILLS):
            await gateway.kill()
            await gateway.start({"JOBGATE_FAULT_POINTS": f"{point}:{passing}"})
            async with asyncio.TaskGroup() as group:
                group.create_task(tell(queues, str(number), tmp_path / f"go-{number}"))
                assert await gateway.ended(within=DEADLINE, what=f"{point}:{passing}") == SIGKILLED
                await gateway.start()
        await assert_invariants(database_url, busy_cluster)


async def dies_at_each(gateway: GatewayProcess, points: Sequence[At], request: Coroutine[None, None, object]) -> None:
    """Let the gateway die at each of these points, one after the other, from the request on, and start it again."""
    await gateway.kill()
    async with asyncio.TaskGroup() as group:
        for number, point in enumerate(points):
            await gateway.start({"JOBGATE_FAULT_POINTS": point})
            if number == 0:
                group.create_task(request)
            assert await gateway.ended(within=DEADLINE, what=f"{point} is reached") == SIGKILLED
        await gateway.start()


async def test_a_scale_up_that_dies_at_each_step_starts_its_replicas_once_when_they_are_admitted(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, gateway: GatewayProcess
) -> None:
    async with watched_queues(busy_cluster, crash_api, crash_namespace, gateway, cpu=2) as (queues, _):
        jobs = queues.jobs
        await submit(queues, "other", "exec sleep 600")
        uid = await post(jobs, elastic_job("grows"))
        for name in ("other", "grows"):
            await until_phase(jobs, name, "Running")
        first = {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", uid)}

        await dies_at_each(gateway, WAITS, scale(jobs, "grows", 2))
        assert {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", uid)} == first, "nothing is admitted"
        await dies_at_each(gateway, STARTS, insist(jobs.http, "DELETE", jobs.path("other")))
        await until_phase(jobs, "grows", "Running")
        after = {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", uid)}
        assert first < after
        assert len(after) == 3

        await dies_at_each(gateway, LEAVES, scale(jobs, "grows", 1))
        await jobs.kube.gone(queues.path(f"{uid}-1"), within=DEADLINE)
        await until_phase(jobs, "grows", "Running")
        # An ended pod holds no quota, and is released later.
        await jobs.until_objects("pods", uid, lambda pods: {pod["metadata"]["uid"] for pod in pods} == first)
        await insist(jobs.http, "DELETE", jobs.path("grows"))
        await assert_invariants(database_url, busy_cluster)
