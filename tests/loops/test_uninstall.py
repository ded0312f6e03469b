"""`jobgate uninstall` takes away what is this installation's, and nothing else."""

from typing import Any
from uuid import uuid4

import pytest

from app import bootstrap
from app.bootstrap import NotConfigured
from app.clock import SystemClock
from app.db import installation, leases
from app.db.engine import Database
from app.domain import labels
from app.settings import Settings
from tests.support.kube import Cluster, KubeClient


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
async def test_ours_goes_and_others_stay(database_url: str, cluster: Cluster, api: KubeClient, namespace: str) -> None:
    ours = await installation_id(database_url)
    base = f"/api/v1/namespaces/{namespace}"
    for owner, prefix in ((ours, "ours"), (str(uuid4()), "others")):
        (await api.post(f"{base}/pods", an_object("Pod", f"{prefix}-pod", owner))).ok()
        (await api.post(f"{base}/configmaps", an_object("ConfigMap", f"{prefix}-anchor", owner))).ok()
        service = an_object("Service", f"{prefix}-service", owner, spec={"clusterIP": "None"})
        (await api.post(f"{base}/services", service)).ok()

    deleted = await bootstrap.uninstall(Settings(database_url=database_url, kubeconfig=str(cluster.kubeconfig)))

    assert deleted == {"Pod": 1, "Service": 1, "ConfigMap": 1}
    for resource, name in (("pods", "pod"), ("configmaps", "anchor"), ("services", "service")):
        await api.gone(f"{base}/{resource}/ours-{name}")
        (await api.get(f"{base}/{resource}/others-{name}")).ok()
    stranger = (await api.get(f"{base}/pods/others-pod")).ok()
    assert stranger["metadata"]["finalizers"] == [labels.EVIDENCE_FINALIZER]
    release = {"metadata": {"finalizers": None}}
    (await api.patch(f"{base}/pods/others-pod", release)).ok()


async def test_not_while_a_controller_is_at_work(database_url: str, cluster: Cluster) -> None:
    db = await Database.open(database_url, pool_size=1)
    try:
        assert await leases.acquire(db, "controller", "somebody", 60.0) is not None
        settings = Settings(database_url=database_url, kubeconfig=str(cluster.kubeconfig), lease_seconds=0.5)
        with pytest.raises(NotConfigured, match="a controller of this installation is running"):
            await bootstrap.uninstall(settings)
    finally:
        await db.close()
