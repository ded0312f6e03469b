"""`jobgate uninstall` takes away what is this installation's, and nothing else."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from app.base.clock import SystemClock
from app.db.installation import identity as installation
from app.db.installation import leases
from app.db.postgres.engine import Database
from app.domain.kubernetes import labels
from app.running import controlling
from app.running.connections import NotConfigured
from app.settings import Settings
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.waiting import until


def an_object(kind: str, name: str, owner: str, **rest: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {labels.INSTALLATION: owner}}
    if kind == "Pod":
        metadata["finalizers"] = [labels.EVIDENCE_FINALIZER]
        rest = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **rest}


async def installation_id(database_url: str) -> str:
    db = await Database.open(database_url, pool_size=1)
    try:
        return str((await installation.get_or_create(db, uuid4(), SystemClock().now())).id)
    finally:
        await db.close()


@pytest.mark.conformance
async def test_uninstall_deletes_only_objects_of_this_installation(
    database_url: str, cluster: Cluster, api: KubeClient, namespace: str
) -> None:
    ours = await installation_id(database_url)
    base = f"/api/v1/namespaces/{namespace}"
    for owner, prefix in ((ours, "ours"), (str(uuid4()), "others")):
        (await api.post(f"{base}/pods", an_object("Pod", f"{prefix}-pod", owner))).ok()
        (await api.post(f"{base}/configmaps", an_object("ConfigMap", f"{prefix}-anchor", owner))).ok()
        anchor = (await api.get(f"{base}/configmaps/{prefix}-anchor")).ok()["metadata"]
        unlabelled = an_object("Pod", f"{prefix}-unlabelled", owner)
        del unlabelled["metadata"]["labels"]
        unlabelled["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": anchor["name"], "uid": anchor["uid"], "controller": True}
        ]
        (await api.post(f"{base}/pods", unlabelled)).ok()
        service = an_object("Service", f"{prefix}-service", owner, spec={"clusterIP": "None"})
        (await api.post(f"{base}/services", service)).ok()

    deleted = await controlling.uninstall(Settings(database_url=database_url, kubeconfig=str(cluster.kubeconfig)))

    assert deleted == {"Pod": 2, "Service": 1, "ConfigMap": 1}
    for resource, name in (("pods", "pod"), ("pods", "unlabelled"), ("configmaps", "anchor"), ("services", "service")):
        await api.gone(f"{base}/{resource}/ours-{name}")
        (await api.get(f"{base}/{resource}/others-{name}")).ok()
    stranger = (await api.get(f"{base}/pods/others-pod")).ok()
    assert stranger["metadata"]["finalizers"] == [labels.EVIDENCE_FINALIZER]
    release = {"metadata": {"finalizers": None}}
    for name in ("others-pod", "others-unlabelled"):
        (await api.patch(f"{base}/pods/{name}", release)).ok()


async def test_uninstall_of_an_installation_for_some_namespaces_lists_nothing_in_its_own(
    database_url: str, cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    ours, system = await installation_id(database_url), f"{namespace}-system"
    base, record = f"/api/v1/namespaces/{namespace}", f"jobgate-installation-{ours}"
    (await api.post("/api/v1/namespaces", {"metadata": {"name": system}})).ok()
    (await api.post(f"/api/v1/namespaces/{system}/configmaps", an_object("ConfigMap", record, ours))).ok()
    (await api.post(f"{base}/pods", an_object("Pod", "ours", ours))).ok()
    (await api.post(f"{base}/configmaps", an_object("ConfigMap", "anchor", ours))).ok()
    async with kube_proxy(cluster) as proxy:
        kubeconfig = str(proxy.kubeconfig(tmp_path / "kubeconfig"))
        settings = Settings(
            database_url=database_url, kubeconfig=kubeconfig, namespaces=(namespace,), system_namespace=system
        )
        assert await controlling.uninstall(settings) == {"Pod": 1, "ConfigMap": 2}
    await api.gone(f"{base}/pods/ours")
    await api.gone(f"{base}/configmaps/anchor")
    await api.gone(f"/api/v1/namespaces/{system}/configmaps/{record}")
    requests = [request.decode().split(" ")[:2] for request in proxy.requests]
    elsewhere = [(method, urlsplit(target).path) for method, target in requests if f"/{namespace}/" not in target]
    own = f"/api/v1/namespaces/{system}/configmaps/{record}"
    assert set(elsewhere) - {("GET", "/api/v1/persistentvolumes"), ("GET", "/api/v1/namespaces")} == {
        ("GET", own),
        ("DELETE", own),
    }
    await api.delete(f"/api/v1/namespaces/{system}")


async def test_a_second_uninstall_completes_one_that_was_interrupted(
    database_url: str, cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    ours, base = await installation_id(database_url), f"/api/v1/namespaces/{namespace}"
    names = [f"pod-{number}" for number in range(3)]
    for name in names:
        (await api.post(f"{base}/pods", an_object("Pod", name, ours))).ok()
    (await api.post(f"{base}/configmaps", an_object("ConfigMap", "anchor", ours))).ok()
    async with kube_proxy(cluster) as proxy:
        settings = Settings(database_url=database_url, kubeconfig=str(proxy.kubeconfig(tmp_path / "kubeconfig")))
        proxy.hold("^DELETE")
        async with asyncio.TaskGroup() as group:
            interrupted = group.create_task(controlling.uninstall(settings))
            await until(lambda: bool(proxy.held))
            interrupted.cancel()
        assert (await controlling.uninstall(settings))["ConfigMap"] == 1
    for name in names:
        await api.gone(f"{base}/pods/{name}")
    await api.gone(f"{base}/configmaps/anchor")


async def test_uninstall_is_refused_while_a_controller_runs(database_url: str, cluster: Cluster) -> None:
    db = await Database.open(database_url, pool_size=1)
    try:
        assert await leases.acquire(db, "controller", "somebody", 60.0) is not None
        settings = Settings(database_url=database_url, kubeconfig=str(cluster.kubeconfig), lease_seconds=0.5)
        with pytest.raises(NotConfigured, match="a controller of this installation is running"):
            await controlling.uninstall(settings)
    finally:
        await db.close()


def of_a_set(kind: str, name: str, owner: str, namespace: str, **rest: Any) -> dict[str, Any]:
    found = {
        labels.INSTALLATION: owner,
        labels.SAMPLE_SET_UID: "u",
        labels.SAMPLE_SET_NAMESPACE: namespace,
        labels.INSTANCE: "s",
    }
    version = "apps/v1" if kind == "StatefulSet" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": found}, **rest}


async def test_uninstall_removes_objects_of_sample_sets_and_labels_of_nodes(
    database_url: str, cluster: Cluster, api: KubeClient, namespace: str
) -> None:
    """Of a set that is ours; the Secret that it names, and another installation's volume, stay."""
    ours, base = await installation_id(database_url), f"/api/v1/namespaces/{namespace}"
    volumes, sets = "/api/v1/persistentvolumes", f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    storage = {"accessModes": ["ReadWriteMany"], "storageClassName": "none"}
    volume = {**storage, "capacity": {"storage": "1Gi"}, "csi": {"driver": "d", "volumeHandle": "h"}}
    claim = {**storage, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "nothing"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    servers = {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    key = f"paddlepaddle.org/juicefs-{namespace}.s"
    (await api.post(volumes, of_a_set("PersistentVolume", namespace, ours, namespace, spec=volume))).ok()
    stranger = of_a_set("PersistentVolume", f"{namespace}-x", str(uuid4()), namespace, spec=volume)
    (await api.post(volumes, stranger)).ok()
    (
        await api.post(
            f"{base}/persistentvolumeclaims", of_a_set("PersistentVolumeClaim", "s", ours, namespace, spec=claim)
        )
    ).ok()
    (await api.post(f"{base}/secrets", of_a_set("Secret", "s-runtime-token", ours, namespace))).ok()
    (await api.post(f"{base}/secrets", {"metadata": {"name": "storage"}})).ok()
    (await api.post(sets, of_a_set("StatefulSet", "s-runtime", ours, namespace, spec=servers))).ok()
    node = {"metadata": {"name": namespace, "labels": {key: "s-runtime-0", "other": "stays"}}}
    (await api.post("/api/v1/nodes", {**node, "spec": {"unschedulable": True}})).ok()

    kubeconfig = str(cluster.kubeconfig)
    deleted = await controlling.uninstall(Settings(database_url=database_url, kubeconfig=kubeconfig))

    assert deleted == {"PersistentVolume": 1, "PersistentVolumeClaim": 1, "Secret": 1, "StatefulSet": 1}
    await api.gone(f"{volumes}/{namespace}")
    await api.gone(f"{base}/persistentvolumeclaims/s")
    await api.gone(f"{sets}/s-runtime")
    assert (await api.get(f"{base}/secrets/s-runtime-token")).status == 404
    (await api.get(f"{base}/secrets/storage")).ok()
    (await api.get(f"{volumes}/{namespace}-x")).ok()
    kept = (await api.get(f"/api/v1/nodes/{namespace}")).ok()["metadata"]["labels"]
    assert key not in kept
    assert kept["other"] == "stays"
    for path in (f"{volumes}/{namespace}-x", f"/api/v1/nodes/{namespace}"):
        (await api.delete(path)).ok()
