"""helm installs, upgrades and removes jobgate on a real control plane, with a node that runs its pods as processes."""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.domain.access.credentials import Role
from tests.deploy.chart import CHART, NO_HELM, helm, run_helm
from tests.support.clusters import jobgate_on_node
from tests.support.clusters.cluster import require_real
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.nodes import running_node
from tests.support.gateways.gateway import jobs_path
from tests.support.waiting import until

REPOSITORY = "registry.example/jobgate"
PATIENCE = 120.0


def images_file(path: Path) -> Path:
    program = [sys.executable, jobgate_on_node.__file__]
    images = [{"match": f"{REPOSITORY}:*", "words": {"jobgate": program}}, {"match": "*"}]
    path.write_text(yaml.safe_dump({"images": images}))
    return path


def placed_on(node: str) -> dict[str, Any]:
    """What a pod needs to run on this node, which is cordoned: it ends with the test, so it runs no other pods."""
    cordon = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    return {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [cordon]}


def values_of(node: str, database_url: str) -> dict[str, Any]:
    placed = placed_on(node)
    small = {"replicas": 1, "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "1Gi"}}} | placed
    return {
        "image": {"repository": REPOSITORY},
        "database": {"url": database_url},
        "migration": {"resources": {"requests": {"cpu": "10m"}}} | placed,
        "api": small | {"workers": 1},
        "controller": small,
        "shutdown": {"preStopSeconds": 1, "drainSeconds": 1, "timeoutSeconds": 20},
    }


def a_job(name: str, node: str) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    template = {"spec": {**placed_on(node), "containers": [container]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": [{"type": "worker", "replicas": 1, "template": template}]},
    }


class Release:
    """A release of the chart in a namespace of its own, which has its name."""

    def __init__(self, api: KubeClient, name: str) -> None:
        self._api = api
        self._name = name

    def run(self, command: str, *arguments: str, values: Mapping[str, Any] | None = None) -> None:
        where = ("--namespace", self._name, "--kubeconfig", str(self._api.cluster.kubeconfig))
        ran = run_helm(command, self._name, *arguments, *where, "--wait", "--timeout", "240s", values=values)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    async def api_pod(self) -> tuple[str, str]:
        """The name and the address of the API pod that is not being deleted."""
        selector = f"app.kubernetes.io/instance={self._name},app.kubernetes.io/component=api"
        answer = await self._api.get(f"/api/v1/namespaces/{self._name}/pods", labelSelector=selector)
        (pod,) = (pod for pod in answer.ok()["items"] if "deletionTimestamp" not in pod["metadata"])
        return pod["metadata"]["name"], pod["status"]["podIP"]

    async def left(self) -> set[str]:
        """The kinds of which objects of the release are left."""
        selector = f"app.kubernetes.io/instance={self._name}"
        found = set()
        for kind, path in {
            "Deployment": f"/apis/apps/v1/namespaces/{self._name}/deployments",
            "Job": f"/apis/batch/v1/namespaces/{self._name}/jobs",
            "Secret": f"/api/v1/namespaces/{self._name}/secrets",
            "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        }.items():
            found |= {kind} if (await self._api.get(path, labelSelector=selector)).ok()["items"] else set()
        return found


async def run_a_job(address: str, database_url: str, name: str, node: str) -> None:
    """Create a token, submit a job, wait for its end, and remove its objects."""
    db = await Database.open(database_url, pool_size=2)
    now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
    _, secret = await tokens.create(db, name=name, role=Role.SUBMITTER, namespaces=["default"], now=now)
    await db.close()
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(base_url=f"http://{address}:8080", headers=headers, timeout=60) as client:
        assert (await client.post(jobs_path("default"), json=a_job(name, node))).status_code == 201
        job = f"{jobs_path('default')}/{name}"

        async def phase() -> str:
            return str((await client.get(f"{job}/status")).json()["status"]["phase"])

        await until(phase, lambda found: found == "Succeeded", what="the job succeeds", within=PATIENCE)
        await until(
            lambda: client.delete(job),
            lambda answer: answer.status_code == 200,
            what="all objects are removed",
            within=PATIENCE,
        )


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """A node that runs the image of jobgate as the program of this checkout."""
    require_real(cluster, "API for some objects of the chart")
    if not helm():
        pytest.skip(NO_HELM)
    images = images_file(tmp_path / "images.yaml")
    with running_node(cluster, tmp_path / "node", "--images", str(images), "--cordoned") as name:
        yield name


@pytest.mark.timeout(900)
async def test_helm_installs_upgrades_and_removes_a_gateway_that_runs_jobs(
    api: KubeClient, namespace: str, node: str, empty_database_url: str
) -> None:
    release = Release(api, namespace)
    values = values_of(node, empty_database_url)
    try:
        release.run("install", str(CHART), values=values)
        assert await release.left() == {"Deployment", "Secret", "ClusterRole", "ClusterRoleBinding"}
        first, address = await release.api_pod()
        await run_a_job(address, empty_database_url, f"{namespace}-first", node)
        release.run("upgrade", str(CHART), values=values | {"settings": {"JOBGATE_MAX_OPEN": "1000"}})
        second, address = await release.api_pod()
        assert first != second, "another setting replaces the pod"
        await run_a_job(address, empty_database_url, f"{namespace}-second", node)
    finally:
        release.run("uninstall")
    assert await release.left() == set()
