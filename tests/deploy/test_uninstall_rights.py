"""Every shape of installation can be uninstalled with exactly the rights that it is shipped with, on a real cluster.

The account of the controller runs `jobgate uninstall` after a job has left its objects.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from app.base.clock import SystemClock
from app.db.installation import identity as installation
from app.db.postgres.engine import Database
from app.domain.kubernetes import labels
from app.running import controlling
from app.settings import Settings
from tests.deploy.chart import grants, of_kind, rendered
from tests.deploy.rights import DEPLOY, NAMESPACED, RBAC, apply
from tests.support.clusters.cluster import require_real
from tests.support.clusters.kube import Cluster, KubeClient

Documents = list[dict[str, Any]]
# The bindings for the whole cluster that those for some namespaces replace: rbac-namespaced.example.yaml.
REPLACED = ("jobgate-jobs", "jobgate-logs")


def named(text: str, prefix: str) -> Documents:
    """The documents with the names of an installation of its own, so that rights of other tests do not count."""
    return [found for found in yaml.safe_load_all(text.replace("jobgate-", f"{prefix}-")) if found]


def whole_cluster(prefix: str, _: str) -> Documents:
    return named(RBAC.read_text(), prefix)


def some_namespaces(prefix: str, namespace: str) -> Documents:
    replaced = {name.replace("jobgate-", f"{prefix}-") for name in REPLACED}
    kept = [
        found
        for found in whole_cluster(prefix, namespace)
        if found["kind"] != "ClusterRoleBinding" or found["metadata"]["name"] not in replaced
    ]
    # Without SampleSets and queues, their roles do not exist.
    given = [
        found
        for found in named(NAMESPACED.read_text().replace("namespace: team-a", f"namespace: {namespace}"), prefix)
        if not found["metadata"]["name"].endswith(("-sample-sets", "-queues"))
    ]
    return kept + given


def kustomized(prefix: str, namespace: str) -> Documents:
    del namespace
    resources = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"]
    found = [document for path in resources for document in named((DEPLOY / path).read_text(), prefix)]
    return [found for found in found if found["kind"] in ("Namespace", "ServiceAccount")] + grants(found)


def charted(prefix: str, _: str, **values: Any) -> Documents:
    system = f"{prefix}-system"
    objects = rendered(values, release=prefix, namespace=system)
    accounts = of_kind("ServiceAccount", objects).values()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}}
    placed = [
        found | {"metadata": found["metadata"] | {"namespace": system}}
        for found in [*accounts, *grants(objects)]
        if not found["kind"].startswith("Cluster") and "namespace" not in found["metadata"]
    ]
    others = [
        found for found in grants(objects) if found["kind"].startswith("Cluster") or "namespace" in found["metadata"]
    ]
    return [space, *placed, *others]


def charted_for_some(prefix: str, namespace: str) -> Documents:
    return charted(prefix, namespace, namespaces=[namespace])


async def kubeconfig_of(api: KubeClient, cluster: Cluster, account: Mapping[str, Any], path: Path) -> Path:
    """A kubeconfig with a token of the service account."""
    metadata = account["metadata"]
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    where = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{metadata['name']}/token"
    token = (await api.post(where, request)).ok()["status"]["token"]
    document = yaml.safe_load(await asyncio.to_thread(cluster.kubeconfig.read_text))
    for user in document["users"]:
        user["user"] = {"token": token}
    await asyncio.to_thread(path.write_text, yaml.safe_dump(document))
    return path


async def make_objects(api: KubeClient, installation_id: str, namespace: str, system: str) -> Mapping[str, str]:
    """Create what a job and a controller leave, and return the paths by their names."""
    marked = {labels.INSTALLATION: installation_id}
    pod = {"containers": [{"name": "main", "image": "busybox"}]}
    objects: dict[str, dict[str, Any]] = {
        f"/api/v1/namespaces/{namespace}/pods": {
            "metadata": {"name": "left", "labels": marked, "finalizers": [labels.EVIDENCE_FINALIZER]},
            "spec": pod,
        },
        f"/api/v1/namespaces/{namespace}/services": {
            "metadata": {"name": "left", "labels": marked},
            "spec": {"clusterIP": "None"},
        },
        f"/api/v1/namespaces/{namespace}/configmaps": {"metadata": {"name": "left", "labels": marked}},
        f"/api/v1/namespaces/{system}/configmaps": {
            "metadata": {"name": f"jobgate-installation-{installation_id}", "labels": marked}
        },
    }
    for path, body in objects.items():
        (await api.post(path, body)).ok()
    return {f"{path}/{body['metadata']['name']}": body["metadata"]["name"] for path, body in objects.items()}


@pytest.mark.parametrize(
    ("shape", "limited"),
    [
        (whole_cluster, False),
        (some_namespaces, True),
        (kustomized, False),
        (charted, False),
        (charted_for_some, True),
    ],
    ids=["whole cluster", "namespaces", "kustomize", "chart", "chart for namespaces"],
)
async def test_uninstall_needs_no_other_rights_than_the_shipped_ones(
    shape: Callable[[str, str], Documents],
    limited: bool,  # noqa: FBT001 - a table
    cluster: Cluster,
    api: KubeClient,
    namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    require_real(cluster, "authorization")
    prefix = f"u{uuid4().hex[:8]}"
    documents = shape(prefix, namespace)
    await apply(api, documents)
    (account,) = (
        found
        for found in documents
        if found["kind"] == "ServiceAccount" and found["metadata"]["name"].endswith("-controller")
    )
    system = f"{prefix}-system"
    db = await Database.open(database_url, pool_size=1)
    found = await installation.get_or_create(db, uuid4(), SystemClock().now())
    await db.close()
    try:
        left = await make_objects(api, str(found.id), namespace, system)
        settings = Settings(
            database_url=database_url,
            kubeconfig=str(await kubeconfig_of(api, cluster, account, tmp_path / "kubeconfig")),
            # A namespace that was deleted took its role with it.
            namespaces=(f"{namespace}-deleted", namespace) if limited else (),
            system_namespace=system,
        )
        assert await controlling.uninstall(settings) == {"Pod": 1, "Service": 1, "ConfigMap": 2}
        for path in left:
            await api.gone(path)
        assert await controlling.uninstall(settings) == {}
    finally:
        for one in documents:
            if one["kind"].startswith("Cluster"):
                plural = f"{one['kind'].lower()}s"
                await api.delete(f"/apis/rbac.authorization.k8s.io/v1/{plural}/{one['metadata']['name']}")
        await api.delete(f"/api/v1/namespaces/{system}")
