"""Jobs with a queue and an uninstall use every right of deploy/rbac-queues.yaml, and no other of Kueue."""

from pathlib import Path

import httpx2
import pytest

from app.running import controlling
from app.settings import Settings
from tests.behaviour.client import DEADLINE, Jobs
from tests.behaviour.manifests import job
from tests.behaviour.queues.kueue import has_kueue, queued, queues_of, requesting
from tests.behaviour.stage import fresh_namespace
from tests.deploy.rights import QUEUES, RBAC, SAMPLE_SETS, documents, granted
from tests.deploy.test_rights_in_use import rights_used
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import connect
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until


async def place_of(jobs: Jobs, name: str) -> int | None:
    """The place of a job in its queue, which is null until it waits."""
    queue = (await jobs.http.get(f"/api/v1/namespaces/{jobs.namespace}/queues/team")).json()
    return next((job["position"] for job in queue.get("pendingJobs", ()) if job["name"] == name), None)


@pytest.mark.timeout(300)
async def test_a_preemption_and_an_uninstall_use_every_right_of_queues(database_url: str, tmp_path: Path) -> None:
    with running_embedded_cluster(tmp_path / "cluster", "--nodes", "1") as cluster:
        async with connect(cluster) as admin, kube_proxy(cluster) as proxy, fresh_namespace(admin) as namespace:
            await admin.post("/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
            kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")
            async with (
                gateway_process(database_url, kubeconfig, tmp_path / "gateway", **STEADY) as gateway,
                httpx2.AsyncClient(base_url=await gateway.start(), timeout=60) as http,
            ):
                jobs = Jobs(http=http, kube=admin, namespace=namespace)
                assert await has_kueue(jobs)
                async with queues_of(jobs, cpu=1) as queues:
                    await queues.submit("low")
                    await jobs.until("low", "Running")
                    await queues.submit("high", high=True)
                    await jobs.until("high", "Running")
                    await until(
                        lambda: place_of(jobs, "low"), lambda place: place == 1, what="a place", within=DEADLINE
                    )
                    await jobs.delete("low")
                    classed = requesting()
                    classed["template"]["spec"]["priorityClassName"] = "none"
                    await jobs.submit(queued(job("classed", classed), "team"))
                    await jobs.pending("classed", "PriorityClassMissing")
                    await jobs.delete("classed")
                    await jobs.pause("high")
                    await jobs.until("high", "Paused")
                    await queues.until_no_workload()
                assert await gateway.stop() == 0
            await controlling.uninstall(Settings(database_url=database_url, kubeconfig=str(kubeconfig)))
            others = granted("gateway", documents(RBAC) + documents(SAMPLE_SETS))
            assert rights_used(proxy) - others == granted("gateway", documents(QUEUES))
