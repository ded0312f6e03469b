"""Kueue killed and frozen: what it has admitted runs on, and nothing starts that it has not admitted."""

from pathlib import Path

import pytest

from tests.behaviour.client import Body, Jobs
from tests.behaviour.manifests import job, until_marked
from tests.behaviour.queues.kueue import elastic_job, queued, requesting
from tests.crash.queues import watched_queues
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kueue_outages import Outage, kueue_outage
from tests.support.gateways.process import GatewayProcess

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


# The create of its Workload fails or times out, or no controller has listed the queues.
CODES = {"ClusterError", "ClusterUnreachable", "WaitingForKueue"}


def waits_without_kueue(body: Body) -> bool:
    return body["phase"] == "Queued" and {one["code"] for one in body["pendingReasons"]} <= CODES


async def uids_of(jobs: Jobs, *names: str) -> set[str]:
    found = [await jobs.of_job("pods", (await jobs.job(name))["uid"]) for name in names]
    return {pod["metadata"]["uid"] for pods in found for pod in pods}


@pytest.mark.parametrize("outage", Outage)
async def test_without_kueue_admitted_jobs_run_and_end_and_no_other_pod_starts(
    outage: Outage,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    gateway: GatewayProcess,
    tmp_path: Path,
) -> None:
    ends, continues = tmp_path / "ends", tmp_path / "continues"
    async with watched_queues(busy_cluster, crash_api, crash_namespace, gateway, cpu=4) as (queues, pods):
        jobs = queues.jobs
        await queues.submit("ends", until_marked(ends, "exit 0"))
        await queues.submit("continues", until_marked(continues, "exit 0"))
        await jobs.submit(elastic_job("grows"))
        for name in ("ends", "continues", "grows"):
            await jobs.until(name, "Running")
        before = await uids_of(jobs, "continues", "grows")
        async with kueue_outage(busy_cluster, crash_api, crash_namespace, outage):
            await jobs.submit(queued(job("waits", requesting("exit 0")), "team"))
            await jobs.scale("grows", 2, task="collector")
            ends.touch()
            await jobs.until("ends", "Succeeded")
            await jobs.until_status("waits", waits_without_kueue)
            # The next controller knows of Kueue only what is stored.
            await gateway.kill()
            await gateway.start()
            await jobs.until_status("waits", waits_without_kueue)
            await jobs.delete("ends")
            assert await uids_of(jobs, "waits") == set()
            assert await uids_of(jobs, "continues", "grows") == before
            continues.touch()
            await jobs.until("continues", "Succeeded")
        await jobs.until("waits", "Succeeded")
        await jobs.until_settled("grows", 1)
        await jobs.until("grows", "Running")
        assert len(await uids_of(jobs, "grows")) == 3
        for name in ("waits", "continues", "grows"):
            await jobs.delete(name)
    assert {attempt.number for attempt in pods.uids} == {1}, "no pod was replaced"
