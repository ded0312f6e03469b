"""A SampleSet and an uninstall use every right of deploy/rbac-sample-sets.yaml and of the chart, and no other."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.domain.kinds.samples.specs.sample_set import API_VERSION
from app.running import controlling
from app.settings import Settings
from tests.deploy.chart import core_grants, sample_set_grants
from tests.deploy.rights import Right, apply, granted, used
from tests.deploy.test_rights_in_use import as_gateway
from tests.support.cache.juicefs import formatted, make_files, needs_fuse
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster, connect
from tests.support.clusters.kube_proxy import KubeProxy, kube_proxy
from tests.support.clusters.nodes import some_node
from tests.support.gateways.process import gateway_process
from tests.support.waiting import until

SETS = "/api/v1/namespaces/default/samplesets"
JOBS = "/api/v1/namespaces/default/samplejobs"


@pytest.fixture
def cluster_with_node(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    if cluster.real:
        with some_node(cluster, tmp_path / "node"):
            yield cluster
        return
    with running_embedded_cluster(tmp_path / "cluster", "--nodes", "1") as own:
        yield own


def manifest(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def until_status(client: httpx2.AsyncClient, path: str, key: str, value: str) -> None:
    async def shown() -> dict[str, Any]:
        found: dict[str, Any] = (await client.get(path)).json()
        return found

    await until(
        shown,
        lambda found: found.get("status", {}).get(key) == value,
        what=f"{key}={value} of {path}",
        within=120,
    )


async def live(client: httpx2.AsyncClient, name: str, source: Path, secret: str, proxy: KubeProxy) -> None:
    """Posted, synced, cleared, scaled, deleted."""
    spec = {"partitions": 1, "source": {"uri": f"file://{source}/"}, "secretRef": {"name": secret}}
    options = {"free-space-ratio": "0.01"}
    whole = manifest("SampleSet", name, **spec, csi={"juiceFSMountOptions": options})
    assert (await client.post(SETS, json=whole)).status_code == 201
    await until_status(client, f"{SETS}/{name}", "phase", "Ready")
    clear = manifest("SampleJob", name, type="clear", sampleSetRef={"name": name}, terminate=True)
    assert (await client.post(JOBS, json=clear)).status_code == 201
    await until_status(client, f"{JOBS}/{name}", "phase", "Succeeded")
    edit = {"content-type": "application/merge-patch+json"}
    assert (await client.patch(f"{SETS}/{name}", json={"spec": {"partitions": 2}}, headers=edit)).status_code < 300
    await until(
        lambda: any(line.startswith(b"PATCH") and b"/scale" in line for line in proxy.requests),
        what="the StatefulSet is scaled",
        within=120,
    )
    assert (await client.delete(f"{SETS}/{name}")).status_code < 300
    await until_status(client, f"{SETS}/{name}", "removal", "gone")


@needs_fuse
@pytest.mark.timeout(600)
async def test_a_sets_life_uses_every_right_and_no_other(
    cluster_with_node: Cluster, database_url: str, tmp_path: Path
) -> None:
    volume = formatted(tmp_path / "volume")
    make_files(tmp_path / "source", 3)
    name = f"rights-{secrets.token_hex(3)}"
    storage = {"name": "vol", "storage": "file", "metaurl": volume.meta, "bucket": f"{volume.bucket}/"}
    async with connect(cluster_with_node) as admin, kube_proxy(as_gateway(cluster_with_node)) as proxy:
        if cluster_with_node.real:
            await apply(admin, *core_grants().values(), *sample_set_grants().values())
        else:
            await admin.post("/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
        secret = {"metadata": {"name": name}, "stringData": storage}
        (await admin.post("/api/v1/namespaces/default/secrets", secret)).ok()
        kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")
        environment = {"JOBGATE_RUNTIME_IMAGE": "jobgate", "JOBGATE_QUEUES": "off"}
        async with gateway_process(database_url, kubeconfig, tmp_path / "gateway", **environment) as gateway:
            async with httpx2.AsyncClient(base_url=await gateway.start(), timeout=60) as client:
                await live(client, name, tmp_path / "source", name, proxy)
            assert await gateway.stop() == 0
        await controlling.uninstall(Settings(database_url=database_url, kubeconfig=str(kubeconfig)))
        await admin.delete(f"/api/v1/namespaces/default/secrets/{name}")
        needed = {right for request in proxy.requests if (right := used(request)) is not None}
        # An uninstall looks for Workloads too, and needs no right to them where none was made.
        needed = {right for right in needed if right.resource != "workloads"}
        for core, (source, found) in zip(core_grants().values(), sample_set_grants().items(), strict=True):
            rights = granted("gateway", found)
            assert needed - rights - granted("gateway", core) == set(), f"more than {source} and the core grant"
            assert rights - needed == set(), f"{source} grants what a set's life does not need"


@pytest.mark.parametrize(
    ("request_line", "right"),
    [
        (b"GET /api/v1/namespaces/a/pods/b:7716/proxy/syncResult/c HTTP/1.1", Right("", "pods/proxy", "get")),
        (b"POST /api/v1/namespaces/a/pods/b:7716/proxy/upload/x?y=z HTTP/1.1", Right("", "pods/proxy", "create")),
        (
            b"PATCH /apis/apps/v1/namespaces/a/statefulsets/b/scale HTTP/1.1",
            Right("apps", "statefulsets/scale", "patch"),
        ),
        (b"PATCH /api/v1/nodes/n HTTP/1.1", Right("", "nodes", "patch")),
    ],
)
def test_requests_of_sets_are_told_apart(request_line: bytes, right: Right) -> None:
    assert used(request_line) == right
