"""A real control plane accepts every object of the chart, strictly, and its Pod Security admission has no warning."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.deploy.chart import EVERYTHING, of_kind, rendered
from tests.support.clusters.cluster import require_real
from tests.support.clusters.discovery import collection_of
from tests.support.clusters.kube import Answer, Cluster, KubeClient

APPLY = "application/apply-patch+yaml"
# Not part of Kubernetes.
OPTIONAL = {"ServiceMonitor", "PrometheusRule"}


async def dry_run(api: KubeClient, found: Mapping[str, Any], collection: str) -> Answer:
    """As `kubectl apply --server-side --dry-run=server --validate=strict` does."""
    return await api.patch(
        f"{collection}/{found['metadata']['name']}",
        yaml.safe_dump(found).encode(),
        content_type=APPLY,
        dryRun="All",
        fieldManager="test",
        fieldValidation="Strict",
        force="true",
    )


async def warn_of_privileges(api: KubeClient, namespace: str) -> None:
    """Have the API server warn of pods that the Pod Security level of deploy/ would refuse."""
    labels = {"pod-security.kubernetes.io/warn": "restricted"}
    (await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})).ok()


@pytest.mark.parametrize(
    "values",
    [
        {},
        EVERYTHING,
        {**EVERYTHING, "namespaces": ["default"], "networkPolicy": {"egress": [{"ports": [{"port": 53}]}]}},
    ],
    ids=["defaults", "everything", "some namespaces"],
)
async def test_a_real_control_plane_accepts_the_chart(
    cluster: Cluster, api: KubeClient, namespace: str, values: Mapping[str, Any]
) -> None:
    require_real(cluster, "API for some objects of the chart")
    await warn_of_privileges(api, namespace)
    skipped = set()
    for found in rendered(values, release=namespace, namespace=namespace):
        placed = {**found, "metadata": {"namespace": namespace} | found["metadata"]}
        collection = await collection_of(api, placed)
        if collection is None:
            skipped.add(found["kind"])
            continue
        if "/namespaces/" not in collection:
            del placed["metadata"]["namespace"]
        answer = await dry_run(api, placed, collection)
        assert answer.status in (200, 201), f"{found['kind']} {found['metadata']['name']}: {answer.body}"
        assert "Warning" not in answer.headers, answer.headers["Warning"]
    assert skipped <= OPTIONAL


async def test_a_real_control_plane_reports_a_wrong_field_and_a_privileged_pod(
    cluster: Cluster, api: KubeClient, namespace: str
) -> None:
    """The checks of the other test can fail."""
    require_real(cluster, "API for some objects of the chart")
    await warn_of_privileges(api, namespace)
    objects = rendered({}, release=namespace, namespace=namespace)
    (service,) = of_kind("Service", objects).values()
    service["metadata"]["namespace"] = namespace
    collection = await collection_of(api, service)
    assert collection is not None
    wrong = service | {"spec": service["spec"] | {"port": 80}}
    assert "field not declared in schema" in (await dry_run(api, wrong, collection)).body["message"]
    deployment = of_kind("Deployment", objects)[f"{namespace}-jobgate-api"]
    deployment["metadata"]["namespace"] = namespace
    deployment["spec"]["template"]["spec"]["securityContext"] = {}
    collection = await collection_of(api, deployment)
    assert collection is not None
    assert "would violate PodSecurity" in (await dry_run(api, deployment, collection)).headers["Warning"]
