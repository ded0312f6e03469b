"""Kueue upgraded and removed while jobs run and wait: on a control plane whose Kueue the script beside it starts."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.behaviour.client import DEADLINE, Body, Jobs
from tests.behaviour.manifests import until_marked
from tests.behaviour.queues.kueue import API, NODE_LABEL, TOLERATION, body_of, path_of, quota_objects
from tests.crash.queues import watched_queues
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import GatewayProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

SCRIPT: Final = Path(__file__).parents[3] / "shared" / "k8s" / "kueue"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GIVEN: Final = os.environ.get("KUEUE") or "0.19"
OLD, NEW = "0.15", "0.19"
SECONDS: Final = 120.0


class Kueue:
    """The Kueue of a control plane of this machine."""

    def __init__(self, cluster: Cluster) -> None:
        directory = cluster.kubeconfig.parent
        found = re.search(r"^webhook: .*port: (\d+)", (directory / "kueue" / "config.yaml").read_text(), re.MULTILINE)
        assert found is not None
        ports = {"KUEUE_PORT": found[1], "K8S_PORT": cluster.url.rpartition(":")[2]}
        self._environment = {**os.environ, **ports, "K8S_DIR": str(directory)}

    async def run(self, action: str, version: str) -> None:
        """Run an action of the script. On a busy machine, new definitions have no status at first."""

        async def attempt() -> int:
            process = await asyncio.create_subprocess_exec(
                *(str(SCRIPT), action),
                env={**self._environment, "KUEUE": version},
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            return await process.wait()

        await until(attempt, lambda status: status == 0, what=f"kueue {action}", within=SECONDS, every=0.5)


@asynccontextmanager
async def replaceable_kueue(cluster: Cluster) -> AsyncIterator[Kueue]:
    """Yield the Kueue of the cluster. Afterwards it has its version again."""
    if not cluster.real or not SCRIPT.exists() or not cluster.kubeconfig.with_name("kueue.pid").exists():
        pytest.skip("only a Kueue can be replaced that a script has started: run `make test-cluster`")
    kueue = Kueue(cluster)
    try:
        yield kueue
    finally:
        await kueue.run("stop", GIVEN)
        await kueue.run("start", GIVEN)


async def pods_of(jobs: Jobs, uid: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", uid)}


async def test_an_upgrade_of_kueue_stops_no_job_and_loses_none(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, gateway: GatewayProcess, tmp_path: Path
) -> None:
    mark = tmp_path / "go"
    async with replaceable_kueue(busy_cluster) as kueue:
        await kueue.run("stop", GIVEN)
        await kueue.run("start", OLD)
        async with watched_queues(busy_cluster, crash_api, crash_namespace, gateway, cpu=2) as (queues, pods):
            jobs = queues.jobs
            running = await queues.submit("running", until_marked(mark, "exit 0"), replicas=2)
            await jobs.until("running", "Running")
            await queues.submit("waiting", "exit 0")
            await jobs.pending("waiting", "WaitingForQuota")
            before = await pods_of(jobs, running)
            await kueue.run("stop", OLD)
            await kueue.run("start", NEW)
            await queues.submit("later", "exit 0", replicas=2)
            await jobs.pending("later", "WaitingForQuota")
            assert await pods_of(jobs, running) == before
            mark.touch()
            for name in ("running", "waiting", "later"):
                await jobs.until(name, "Succeeded")
                await jobs.delete(name)
        assert {attempt.number for attempt in pods.uids} == {1}, "no pod was replaced"


async def test_jobs_wait_for_a_kueue_that_is_removed_and_run_when_it_is_back(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, gateway: GatewayProcess, tmp_path: Path
) -> None:
    mark = tmp_path / "go"
    async with (
        replaceable_kueue(busy_cluster) as kueue,
        watched_queues(busy_cluster, crash_api, crash_namespace, gateway, cpu=2) as (queues, _),
    ):
        jobs = queues.jobs
        running = await queues.submit("running", until_marked(mark, "exit 0"), replicas=2)
        await jobs.until("running", "Running")
        # Kueue reports nothing of a job that equals one that waits.
        for name, cpu in (("waiting", "1"), ("withdrawn", "1500m")):
            await queues.submit(name, "exit 0", cpu=cpu)
            await jobs.pending(name, "WaitingForQuota")

        for definition in (await crash_api.get(DEFINITIONS)).ok()["items"]:
            if definition["spec"]["group"] == "kueue.x-k8s.io":
                await crash_api.delete(f"{DEFINITIONS}/{definition['metadata']['name']}")
        await crash_api.gone(API, within=DEADLINE)
        await kueue.run("stop", GIVEN)
        await jobs.until_objects("pods", running, lambda pods: not pods)
        for name in ("running", "waiting", "withdrawn"):
            await jobs.pending(name, "WaitingForKueue")
        await jobs.delete("withdrawn")
        # Without Kueue, a job that names no queue needs none.
        await queues.submit("plain", "exit 0", queue=None)
        await jobs.until("plain", "Succeeded")

        await kueue.run("start", GIVEN)
        for body in queue_objects(queues.name, jobs.namespace):
            (await crash_api.post(path_of(body), body)).ok()
        mark.touch()
        for name in ("running", "waiting"):
            await jobs.until(name, "Succeeded")
        for name in ("running", "waiting", "plain"):
            await jobs.delete(name)


def queue_objects(name: str, namespace: str) -> list[Body]:
    """The queues of the test, as they were before."""
    flavor = {"nodeLabels": NODE_LABEL, "tolerations": [TOLERATION]}
    made = quota_objects(name, 2, flavor=flavor, priority_class=f"{name}-high")
    for local in ("team", "default"):
        body = body_of("LocalQueue", local, spec={"clusterQueue": name})
        body["metadata"]["namespace"] = namespace
        made.append(body)
    return made
