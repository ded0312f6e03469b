"""Jobs with a queue and an uninstall use every right of deploy/rbac-queues.yaml, and no other of Kueue."""

from pathlib import Path

import httpx2
import pytest

from app.running import controlling
from app.settings import Settings
from tests.behaviour.client import Jobs
from tests.behaviour.queues.kueue import has_kueue, queues_of
from tests.behaviour.stage import fresh_namespace
from tests.deploy.rights import QUEUES, documents, granted
from tests.deploy.test_rights_in_use import rights_used
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import connect
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.gateways.process import STEADY, gateway_process


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
                    await jobs.delete("low")
                    await jobs.pause("high")
                    await jobs.until("high", "Paused")
                    await queues.until_no_workload()
                assert await gateway.stop() == 0
            await controlling.uninstall(Settings(database_url=database_url, kubeconfig=str(kubeconfig)))
            needed = {right for right in rights_used(proxy) if right.group == "kueue.x-k8s.io"}
            assert needed == granted("gateway", documents(QUEUES))
