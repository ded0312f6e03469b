"""jobgate and the API server refuse the same pod templates.

Each generated template is validated by jobgate, and the pod that jobgate would create from it is posted as a dry run.
`make test-cluster` checks the same templates in every run, and `make fuzz` others, if a control plane is available.
"""

import asyncio
import http.client
import json
import re
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, note

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds import registry
from app.domain.kinds.job_kind import Limits
from app.domain.manifests.workload import pod_manifest
from app.domain.planning import Planner
from tests.support.clusters.cluster import require_real
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.plans import GIVEN
from tests.support.plugins.properties import examples
from tests.support.pod_templates.places import DEFINITIONS, PLACES, Template, other_values
from tests.support.pod_templates.strategies import changed_templates, whole_templates
from tools.generators.pod_template_schema import schema_of

pytestmark = pytest.mark.conformance

PLANNER = Planner(installation="i")
TEMPLATE = "/spec/replicaSpecs/0/template"
CONNECTIONS = 8
# Every seventh of about 30 000 changes of one field, so that the test takes less than a minute.
SHARE = 7
REPORTED = 20
# Refusals of the API server that jobgate does not share, by status and message.
ADMISSION = 403
ALLOWED_REFUSALS = {
    # Admission plugins compare the pod with other objects of the cluster, such as ServiceAccounts, PriorityClasses and
    # RuntimeClasses, which may change until the pod is created.
    (ADMISSION, ""): "admission plugin",
    # With the feature gate SELinuxMount, which some clusters turn on, the value is accepted.
    (422, 'seLinuxChangePolicy: Unsupported value: "MountOption"'): "feature gate",
}
# Refusals of jobgate that the API server does not share, by the end of the pointer.
ALLOWED_POINTERS = {
    # Without the feature gate of a field, the API server removes the field before it validates the pod. With the gate,
    # it refuses the value as jobgate does.
    r"/lifecycle/stopSignal": "feature gate ContainerStopSignals",
    r"/clusterTrustBundle(/.*)?": "feature gate ClusterTrustBundleProjection",
    r"/podCertificate(/.*)?": "feature gate PodCertificateRequest",
    r"/schedulingGroup(/.*)?": "feature gate GenericWorkload",
}
# Fields that Kubernetes 1.37 adds. It removes them from every pod, as their feature gates are off, so jobgate reports
# them as unknown fields instead of ignoring them silently.
WITHOUT_EFFECT = {
    *(("EvictionResponder", name) for name in ("name", "priority")),
    *((source, "defaultUser") for source in ("ConfigMapVolumeSource", "DownwardAPIVolumeSource", "SecretVolumeSource")),
    *((source, "user") for source in ("KeyToPath", "DownwardAPIVolumeFile", "ServiceAccountTokenProjection")),
    *((source, "user") for source in ("ClusterTrustBundleProjection", "PodCertificateProjection")),
    ("ProjectedVolumeSource", "defaultUser"),
    ("EmptyDirVolumeSource", "mode"),
    ("GRPCAction", "mode"),
    ("HTTPGetAction", "protocol"),
    ("PodSpec", "evictionResponders"),
    ("VolumeMount", "bindMountOptions"),
}


@dataclass(frozen=True, slots=True)
class Server:
    """Posts dry runs to one namespace. Each thread that posts takes a connection."""

    cluster: Cluster = field(repr=False)
    namespace: str
    connections: SimpleQueue[http.client.HTTPConnection] = field(repr=False)

    def refusal(self, pod: Template) -> tuple[int, str] | None:
        """Return the status and the message with which the API server refuses the pod, or None."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?dryRun=All&fieldValidation=Strict"
        headers = {"Authorization": f"Bearer {self.cluster.token}", "Content-Type": "application/json"}
        placed = {**pod, "metadata": {**pod["metadata"], "namespace": self.namespace}}
        with self._connected() as connection:
            connection.request("POST", path, json.dumps(placed), headers)
            response = connection.getresponse()
            body = json.loads(response.read())
        return None if response.status < 300 else (response.status, body["message"])

    @contextmanager
    def _connected(self) -> Iterator[http.client.HTTPConnection]:
        connection = self.connections.get()
        try:
            yield connection
        except http.client.HTTPException:
            connection.close()  # the next request opens it again
            raise
        finally:
            self.connections.put(connection)


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[Server]:
    require_real(cluster, "complete validation of pods")
    namespace = f"test-{secrets.token_hex(5)}"
    asyncio.run(_create(cluster, namespace))
    address = urlsplit(cluster.url)
    free: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()
    opened = [
        http.client.HTTPSConnection(address.hostname or "", address.port, context=cluster.tls, timeout=60)
        for _ in range(CONNECTIONS)
    ]
    for connection in opened:
        free.put(connection)
    yield Server(cluster, namespace, free)
    for connection in opened:
        connection.close()
    asyncio.run(_delete(cluster, namespace))


async def _create(cluster: Cluster, namespace: str) -> None:
    async with connect(cluster) as api:
        (await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).ok()
        await api.eventually(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", bool)


async def _delete(cluster: Cluster, namespace: str) -> None:
    async with connect(cluster) as api:
        await api.delete(f"/api/v1/namespaces/{namespace}")


def job_of(template: Template) -> Template:
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"replicaSpecs": [{"type": "w", "replicas": 1, "template": template}]},
    }


def validated(template: Template) -> tuple[Sequence[FieldError], Template]:
    """Return the errors of a template, and the pod that jobgate creates from it, or would create."""
    document = job_of(template)
    kind = registry.find(document["apiVersion"], document["kind"])
    try:
        accepted = kind.accept(document, Limits(), GIVEN)
    except InvalidManifest as refused:
        return refused.errors, _pod_of(template)
    plan = PLANNER.plan(accepted, "u")
    return [], pod_manifest(plan, plan.tasks[0].render(0), 1, None)


def _pod_of(template: Template) -> Template:
    """Return the pod of a template that cannot be planned."""
    _, pod = validated({"spec": {"containers": [{"name": "c", "image": "i"}]}})
    metadata, spec = template.get("metadata") or {}, template.get("spec")
    for name in ("labels", "annotations"):
        own = metadata.get(name)
        if own is not None:
            pod["metadata"][name] = {**pod["metadata"].get(name, {}), **own} if isinstance(own, dict) else own
    if isinstance(spec, dict):
        known = {name: value for name, value in spec.items() if name != "hostname" or value is not None}
        spec = {"hostname": pod["spec"]["hostname"], "restartPolicy": "Never", **known}
    return {**pod, "spec": spec}


def disagreement(server: Server, template: Template) -> str:
    """Return what jobgate and the API server say if only one of them refuses the template; otherwise nothing."""
    errors, pod = validated(template)
    refusal = server.refusal(pod)
    if bool(errors) == bool(refusal):
        return ""
    if refusal and any(refusal[0] == status and text in refusal[1] for status, text in ALLOWED_REFUSALS):
        return ""
    if errors and all(_is_allowed(error) for error in errors):
        return ""
    mine = "; ".join(f"{error.pointer}: {error.detail}" for error in errors) or "accepted"
    theirs = " ".join(map(str, refusal or ())) or "accepted"
    return f"template: {json.dumps(template)}\n  jobgate:    {mine}\n  API server: {theirs}"


def _is_allowed(error: FieldError) -> bool:
    return any(re.search(f"{ending}$", error.pointer) for ending in ALLOWED_POINTERS)


async def test_the_schema_has_the_fields_of_the_api_server(server: Server, api: KubeClient) -> None:
    del server  # only a real API server publishes the definitions
    published = (await api.get("/openapi/v2")).ok()["definitions"]
    offered, known = (_fields(definitions) for definitions in (schema_of(published)["$defs"], DEFINITIONS))
    assert known <= offered
    assert offered - known <= WITHOUT_EFFECT


def _fields(definitions: dict[str, Any]) -> set[tuple[str, str]]:
    return {(name, field) for name, one in definitions.items() for field in one.get("properties", ())}


def test_each_value_of_one_field(server: Server) -> None:
    def changes() -> Iterator[Template]:
        for place in PLACES:
            yield place.template
            for value in other_values(place.schema):
                yield place.with_value(value)

    chosen = list(islice(changes(), 0, None, SHARE))
    assert len(chosen) > 3_000
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        found = [text for text in pool.map(lambda template: disagreement(server, template), chosen) if text]
    assert not found, f"{len(found)} disagreements:\n" + "\n".join(found[:REPORTED])


@examples(fixed=150, fuzz=1_000)
@given(whole_templates())
def test_whole_templates(server: Server, template: Template) -> None:
    _agree(server, template)


@examples(fixed=300, fuzz=2_000)
@given(changed_templates())
def test_whole_templates_with_another_value_of_one_field(server: Server, template: Template) -> None:
    _agree(server, template)


def _agree(server: Server, template: Any) -> None:
    found = disagreement(server, template)
    note(found)
    assert not found
