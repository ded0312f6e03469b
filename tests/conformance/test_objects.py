"""Creating, reading, changing and refusing objects."""

from typing import Any

import pytest

from tests.conformance.manifests import bound_pod, config_map, maps, pod, pods
from tests.support.clusters.kube import JSON_PATCH, MERGE, STRATEGIC, KubeClient

pytestmark = pytest.mark.conformance


async def test_create_gives_identity(api: KubeClient, namespace: str) -> None:
    created = (await api.post(maps(namespace), config_map())).ok()
    assert created["kind"] == "ConfigMap"
    assert created["apiVersion"] == "v1"
    metadata = created["metadata"]
    assert metadata["namespace"] == namespace
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 0
    assert "generation" not in metadata
    read = (await api.get(maps(namespace, "c"))).ok()
    assert read == created


async def test_pod_defaults(api: KubeClient, namespace: str) -> None:
    created = (await api.post(pods(namespace), pod(schedulerName="nobody"))).ok()
    spec, status = created["spec"], created["status"]
    expected = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert {name: spec.get(name) for name in expected} == expected
    assert status == {"phase": "Pending", "qosClass": "BestEffort"}
    assert created["metadata"]["generation"] == 1
    container = spec["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    keys = {(entry["key"], entry["effect"], entry["tolerationSeconds"]) for entry in spec["tolerations"]}
    assert keys == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }


async def test_generate_name(api: KubeClient, namespace: str) -> None:
    names = set()
    for _ in range(3):
        created = (await api.post(maps(namespace), {"metadata": {"generateName": "some-"}})).ok()
        assert created["metadata"]["generateName"] == "some-"
        names.add(created["metadata"]["name"])
    assert len(names) == 3
    assert all(len(name) == 10 and name.startswith("some-") for name in names)


async def test_versions_increase_across_resources(api: KubeClient, namespace: str) -> None:
    first = (await api.post(maps(namespace), config_map())).ok()
    second = (await api.post(pods(namespace), bound_pod())).ok()
    third = (await api.patch(maps(namespace, "c"), {"data": {"key": "other"}})).ok()
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, second, third)]
    assert versions == sorted(set(versions))


async def test_update_without_change_keeps_the_version(api: KubeClient, namespace: str) -> None:
    created = (await api.post(maps(namespace), config_map())).ok()
    again = (await api.patch(maps(namespace, "c"), {"data": {"key": "value"}})).ok()
    assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_already_exists(api: KubeClient, namespace: str) -> None:
    (await api.post(maps(namespace), config_map())).ok()
    answer = await api.post(maps(namespace), config_map())
    assert answer.refused(409, "AlreadyExists") == 'configmaps "c" already exists'
    assert answer.body["details"] == {"name": "c", "kind": "configmaps"}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
async def test_not_found(api: KubeClient, namespace: str, method: str) -> None:
    body: dict[str, Any] | None = {} if method == "PATCH" else None
    answer = await api.call(method, pods(namespace, "none"), body, content_type=MERGE if body is not None else "")
    assert answer.refused(404, "NotFound") == 'pods "none" not found'
    assert answer.body["details"] == {"name": "none", "kind": "pods"}


async def test_missing_namespace(api: KubeClient) -> None:
    answer = await api.post(maps("nowhere-at-all"), config_map())
    assert answer.refused(404, "NotFound") == 'namespaces "nowhere-at-all" not found'
    assert (await api.get(maps("nowhere-at-all"))).ok()["items"] == []


async def test_namespace_must_agree(api: KubeClient, namespace: str) -> None:
    answer = await api.post(maps(namespace), config_map(namespace="other"))
    expected = "the namespace of the provided object does not match the namespace sent on the request"
    assert answer.refused(400, "BadRequest") == expected


async def test_put_replaces(api: KubeClient, namespace: str) -> None:
    created = (await api.post(maps(namespace), config_map(labels={"a": "b"}))).ok()
    created["data"] = {"other": "1"}
    del created["metadata"]["labels"]
    replaced = (await api.put(maps(namespace, "c"), created)).ok()
    assert replaced["data"] == {"other": "1"}
    assert "labels" not in replaced["metadata"]
    assert replaced["metadata"]["uid"] == created["metadata"]["uid"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_stale_version_conflicts(api: KubeClient, namespace: str, method: str) -> None:
    old = (await api.post(maps(namespace), config_map())).ok()
    (await api.patch(maps(namespace, "c"), {"data": {"key": "newer"}})).ok()
    old["data"]["key"] = "mine"
    kind = "application/json" if method == "PUT" else MERGE
    answer = await api.call(method, maps(namespace, "c"), old, content_type=kind)
    message = answer.refused(409, "Conflict")
    assert message == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes '
        "to the latest version and try again"
    )


async def test_put_with_another_uid_conflicts(api: KubeClient, namespace: str) -> None:
    created = (await api.post(maps(namespace), config_map())).ok()
    created["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    del created["metadata"]["resourceVersion"]
    answer = await api.put(maps(namespace, "c"), created)
    assert "Precondition failed: UID in precondition: 00000000" in answer.refused(409, "Conflict")


PATCHES: list[tuple[str, Any, dict[str, str] | None]] = [
    (MERGE, {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    (MERGE, {"data": {"a": None}}, None),
    (MERGE, {"data": None}, None),
    (JSON_PATCH, [{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
    (JSON_PATCH, [{"op": "replace", "path": "/data/a", "value": "3"}], {"a": "3"}),
    (JSON_PATCH, [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}], None),
    (STRATEGIC, {"data": {"b": "2", "a": None}}, {"b": "2"}),
]


@pytest.mark.parametrize(("kind", "patch", "expected"), PATCHES)
async def test_patch(api: KubeClient, namespace: str, kind: str, patch: Any, expected: dict[str, str] | None) -> None:
    (await api.post(maps(namespace), {"metadata": {"name": "c"}, "data": {"a": "1"}})).ok()
    patched = (await api.patch(maps(namespace, "c"), patch, kind)).ok()
    assert (patched.get("data") or None) == expected


async def test_json_patch_test_that_fails(api: KubeClient, namespace: str) -> None:
    (await api.post(maps(namespace), config_map())).ok()
    patch = [{"op": "test", "path": "/data/key", "value": "other"}]
    answer = await api.patch(maps(namespace, "c"), patch, JSON_PATCH)
    assert answer.status == 422
    assert "the server rejected our request due to an error in our request" in answer.body["message"]


async def test_strategic_patch_merges_lists_by_key(api: KubeClient, namespace: str) -> None:
    (await api.post(pods(namespace), bound_pod())).ok()
    for kind, value in (("First", "True"), ("Second", "False"), ("First", "False")):
        patch = {"status": {"conditions": [{"type": kind, "status": value}]}}
        (await api.patch(pods(namespace, "p") + "/status", patch, STRATEGIC)).ok()
    read = (await api.get(pods(namespace, "p"))).ok()
    found = {entry["type"]: entry["status"] for entry in read["status"]["conditions"]}
    assert found == {"First": "False", "Second": "False"}


async def test_unknown_patch_type(api: KubeClient, namespace: str) -> None:
    (await api.post(maps(namespace), config_map())).ok()
    answer = await api.patch(maps(namespace, "c"), {}, "application/json")
    answer.refused(415, "UnsupportedMediaType")


async def test_status_and_spec_are_apart(api: KubeClient, namespace: str) -> None:
    (await api.post(pods(namespace), bound_pod())).ok()
    both: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"hostname": "x"},
        "status": {"phase": "Running"},
    }
    read = (await api.patch(pods(namespace, "p") + "/status", both)).ok()
    assert read["status"]["phase"] == "Running"
    assert "hostname" not in read["spec"]
    read = (await api.patch(pods(namespace, "p"), {"status": {"phase": "Failed"}})).ok()
    assert read["status"]["phase"] == "Running"
    assert read["metadata"]["generation"] == 1


async def test_pod_spec_is_immutable(api: KubeClient, namespace: str) -> None:
    (await api.post(pods(namespace), bound_pod())).ok()
    answer = await api.patch(pods(namespace, "p"), {"spec": {"hostname": "x"}})
    message = answer.refused(422, "Invalid")
    assert message.startswith('Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than')
    cause = answer.body["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "spec")
    image = [{"name": "main", "image": "registry.example/none:2"}]
    changed = (await api.patch(pods(namespace, "p"), {"spec": {"containers": image}}, STRATEGIC)).ok()
    assert changed["metadata"]["generation"] == 2


async def test_dry_run_stores_nothing(api: KubeClient, namespace: str) -> None:
    answer = await api.post(maps(namespace), config_map(), dryRun="All")
    assert answer.status == 201
    assert answer.body["metadata"]["uid"]
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await api.get(maps(namespace, "c"))).status == 404
    (await api.post(maps(namespace), config_map())).ok()
    (await api.patch(maps(namespace, "c"), {"data": {"key": "x"}}, dryRun="All")).ok()
    (await api.delete(maps(namespace, "c"), dryRun="All")).ok()
    assert (await api.get(maps(namespace, "c"))).ok()["data"] == {"key": "value"}
    refused = await api.post(maps(namespace), config_map("d"), dryRun="Some")
    refused.refused(422, "Invalid")


async def test_services(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    headless = {"clusterIP": "None", "selector": {"a": "b"}, "publishNotReadyAddresses": True}
    created = (await api.post(path, {"metadata": {"name": "h"}, "spec": headless})).ok()
    assert created["spec"]["clusterIP"] == "None"
    assert created["spec"]["publishNotReadyAddresses"] is True
    created = (await api.post(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})).ok()
    assert created["spec"]["clusterIP"].count(".") == 3
    assert created["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert created["spec"]["type"] == "ClusterIP"
    refused = await api.post(path, {"metadata": {"name": "a.b"}, "spec": headless})
    assert "must not contain dots" in refused.refused(422, "Invalid")


async def test_secret_and_lease(api: KubeClient, namespace: str) -> None:
    secret = {"metadata": {"name": "s"}, "data": {"k": "dmFsdWU="}}
    created = (await api.post(f"/api/v1/namespaces/{namespace}/secrets", secret)).ok()
    assert created["type"] == "Opaque"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    made = (await api.post(leases, lease)).ok()
    assert made["apiVersion"] == "coordination.k8s.io/v1"
    made["spec"]["holderIdentity"] = "you"
    taken = (await api.put(f"{leases}/l", made)).ok()
    (await api.put(f"{leases}/l", made)).refused(409, "Conflict")
    assert taken["spec"]["holderIdentity"] == "you"
    del made["metadata"]["resourceVersion"]
    blind = await api.put(f"{leases}/l", made)
    assert blind.refused(422, "Invalid").startswith(
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion'
    )
    assert (await api.put(f"{leases}/fresh", {**lease, "metadata": {"name": "fresh"}})).status == 201
    missing = await api.get(f"{leases}/none")
    assert missing.refused(404, "NotFound") == 'leases.coordination.k8s.io "none" not found'
    assert missing.body["details"] == {"name": "none", "group": "coordination.k8s.io", "kind": "leases"}


async def test_a_secret_takes_text_and_keeps_bytes(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    body = {"metadata": {"name": "s"}, "data": {"a": "eA==", "b": "eA=="}, "stringData": {"b": "y"}}
    created = (await api.post(path, body)).ok()
    assert "stringData" not in created
    assert (created["type"], created["data"]) == ("Opaque", {"a": "eA==", "b": "eQ=="})
    patched = (await api.patch(f"{path}/s", {"stringData": {"a": "z"}})).ok()
    assert patched["data"] == {"a": "eg==", "b": "eQ=="}
