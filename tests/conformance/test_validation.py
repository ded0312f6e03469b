"""What the API server refuses, and in which words."""

from typing import Any

import pytest

from tests.conformance.manifests import config_map, pod
from tests.support.clusters.kube import KubeClient

pytestmark = pytest.mark.conformance

IMAGE = "registry.example/none:1"


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(items)}}


INVALID: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("bad name", pod("P_2"), [("FieldValueInvalid", "metadata.name")]),
    ("no containers", containers(), [("FieldValueRequired", "spec.containers")]),
    ("no image", containers({"name": "a"}), [("FieldValueRequired", "spec.containers[0].image")]),
    ("container name", containers({"name": "A_", "image": IMAGE}), [("FieldValueInvalid", "spec.containers[0].name")]),
    (
        "same name twice",
        containers({"name": "a", "image": IMAGE}, {"name": "a", "image": IMAGE}),
        [("FieldValueDuplicate", "spec.containers[1].name")],
    ),
    ("restart policy", pod(restartPolicy="Sometimes"), [("FieldValueNotSupported", "spec.restartPolicy")]),
    ("hostname", pod(hostname="a.b"), [("FieldValueInvalid", "spec.hostname")]),
    (
        "request over limit",
        containers({"name": "a", "image": IMAGE, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
        [("FieldValueInvalid", "spec.containers[0].resources.requests")],
    ),
    (
        "missing volume",
        containers({"name": "a", "image": IMAGE, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
        [("FieldValueNotFound", "spec.containers[0].volumeMounts[0].name")],
    ),
    (
        "port",
        containers({"name": "a", "image": IMAGE, "ports": [{"containerPort": 70000}]}),
        [("FieldValueInvalid", "spec.containers[0].ports[0].containerPort")],
    ),
]


@pytest.mark.parametrize(("body", "causes"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID])
async def test_invalid_pods(
    api: KubeClient, namespace: str, body: dict[str, Any], causes: list[tuple[str, str]]
) -> None:
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", body)
    message = answer.refused(422, "Invalid")
    assert message.startswith(f'Pod "{body["metadata"]["name"]}" is invalid: ')
    found = [(cause["reason"], cause["field"]) for cause in answer.body["details"]["causes"]]
    assert found == causes
    assert answer.body["details"]["causes"][0]["message"] in message


async def test_all_causes_at_once(api: KubeClient, namespace: str) -> None:
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "P_2"}, "spec": {}})
    assert len(answer.body["details"]["causes"]) == 2
    assert answer.refused(422, "Invalid").endswith("spec.containers: Required value]")


async def test_bad_labels_and_keys(api: KubeClient, namespace: str) -> None:
    body = {"metadata": {"name": "c", "labels": {"a b": "c d"}}, "data": {"x y": "1"}}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
    answer.refused(422, "Invalid")
    fields = [cause["field"] for cause in answer.body["details"]["causes"]]
    assert fields == ["metadata.labels", "metadata.labels", "data[x y]"]


async def test_nameless(api: KubeClient, namespace: str) -> None:
    answer = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {}})
    assert "name or generateName is required" in answer.refused(422, "Invalid")


async def test_strict_names_unknown_fields(api: KubeClient, namespace: str) -> None:
    body = containers({"name": "a", "image": IMAGE, "comand": ["x"]})
    body["spec"]["foo"] = 1
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", body, fieldValidation="Strict")
    message = answer.refused(400, "BadRequest")
    assert 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: ' in message
    assert 'unknown field "spec.foo"' in message
    assert 'unknown field "spec.containers[0].comand"' in message


async def test_unknown_fields_are_dropped_with_a_warning(api: KubeClient, namespace: str) -> None:
    body = {**config_map(), "surprise": 1}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", body, fieldValidation="Warn")
    assert "surprise" not in answer.ok()
    assert 'unknown field \\"surprise\\"' in answer.headers["Warning"]


async def test_wrong_type(api: KubeClient, namespace: str) -> None:
    body = containers({"name": "a", "image": IMAGE, "command": "x"})
    message = (await api.post(f"/api/v1/namespaces/{namespace}/pods", body)).refused(400, "BadRequest")
    assert "cannot unmarshal string into Go struct field Container.spec.containers.command of type []string" in message


async def test_bad_json_and_media_types(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, b'{"metadata":')).refused(400, "BadRequest")
    (await api.call("POST", path, b"a: b", content_type="text/plain")).refused(415, "UnsupportedMediaType")
    made = await api.call("POST", path, b"metadata:\n  name: plain\n", content_type="application/yaml")
    assert made.ok()["metadata"]["name"] == "plain"


async def test_bad_references_and_finalizers(api: KubeClient, namespace: str, minor: int) -> None:
    body = config_map(finalizers=["noslash"], ownerReferences=[{"kind": "Pod"}])
    answer = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
    message = answer.refused(422, "Invalid")
    assert "name is neither a standard finalizer name nor is it fully qualified" in message
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    owner = "metadata.ownerReferences[0]" if minor >= 37 else "metadata.ownerReferences"
    assert fields == {"metadata.finalizers[0]", f"{owner}.apiVersion", f"{owner}.name", f"{owner}.uid"}


async def test_names_must_agree(api: KubeClient, namespace: str) -> None:
    answer = await api.put(f"/api/v1/namespaces/{namespace}/configmaps/one", config_map("two"))
    assert answer.refused(400, "BadRequest") == (
        "the name of the object (two) does not match the name on the URL (one)"
    )


async def test_quantities(api: KubeClient, namespace: str) -> None:
    body = containers({"name": "a", "image": IMAGE, "resources": {"requests": {"cpu": "1x"}}})
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", body)
    assert "quantities must match the regular expression" in answer.refused(400, "BadRequest")


async def test_log_requests(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    body = containers({"name": "a", "image": IMAGE}, {"name": "b", "image": IMAGE})
    body["spec"] |= {"initContainers": [{"name": "i", "image": IMAGE}], "schedulerName": "nobody"}
    (await api.post(path, body)).ok()
    answer = await api.get(f"{path}/p/log")
    assert answer.refused(400, "BadRequest") == ("a container name must be specified for pod p, choose one of: [i a b]")
    answer = await api.get(f"{path}/p/log", container="z")
    assert answer.refused(400, "BadRequest") == "container z is not valid for pod p"
    assert (await api.get(f"{path}/p/log", container="a")).status == 204
    answer = await api.get(f"{path}/p/log", container="a", tailLines="-1")
    assert "tailLines: Invalid value: -1: must be greater than or equal to 0" in answer.refused(422, "Invalid")
    (await api.post(path, {**pod("q"), "spec": {**pod()["spec"], "nodeName": "nobody"}})).ok()
    assert (await api.get(f"{path}/q/log")).refused(404, "NotFound") == 'pods "nobody" not found'
    (await api.get(f"{path}/none/log")).refused(404, "NotFound")


async def test_wrong_kind(api: KubeClient, namespace: str) -> None:
    body = {**config_map(), "kind": "Secret", "apiVersion": "v1"}
    (await api.post(f"/api/v1/namespaces/{namespace}/configmaps", body)).refused(400, "BadRequest")


async def test_missing_service_account(api: KubeClient, namespace: str) -> None:
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", pod(serviceAccountName="ghost"))
    assert answer.refused(403, "Forbidden") == (
        f'pods "p" is forbidden: error looking up service account {namespace}/ghost: serviceaccount "ghost" not found'
    )


async def test_unknown_paths_and_methods(api: KubeClient, namespace: str) -> None:
    (await api.get("/api/v1/foos")).refused(404, "NotFound")
    (await api.put(f"/api/v1/namespaces/{namespace}/pods", {})).refused(405, "MethodNotAllowed")
    assert (await api.get("/apis/nowhere.example/v1/foos")).status == 404


async def test_bad_token(api: KubeClient) -> None:
    answer = await api.call("GET", "/api/v1/namespaces")
    answer.ok()
    api._session.headers["Authorization"] = "Bearer wrong"
    assert (await api.get("/api/v1/namespaces")).refused(401, "Unauthorized") == "Unauthorized"


async def test_discovery(api: KubeClient, minor: int) -> None:
    assert (await api.get("/api")).ok()["versions"] == ["v1"]
    rows = {row["name"]: row for row in (await api.get("/api/v1")).ok()["resources"]}
    assert rows["pods"]["kind"] == "Pod"
    assert rows["pods"]["namespaced"] is True
    assert {"get", "list", "watch", "create", "delete", "patch", "update"} <= set(rows["pods"]["verbs"])
    assert {"pods/status", "pods/log", "pods/binding", "nodes/status"} <= rows.keys()
    groups = [group["name"] for group in (await api.get("/apis")).ok()["groups"]]
    assert "coordination.k8s.io" in groups
    leases = (await api.get("/apis/coordination.k8s.io/v1")).ok()
    assert "leases" in [row["name"] for row in leases["resources"]]
    assert minor in ((36, 37) if api.cluster.real else (36,)), "the suites have not been compared with this version"
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await api.get(path)).body == "ok"


async def test_only_privileged_containers_may_propagate_mounts(api: KubeClient, namespace: str) -> None:
    body = pod(volumes=[{"name": "v", "hostPath": {"path": "/tmp", "type": "DirectoryOrCreate"}}])
    container = body["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]
    refused = await api.post(f"/api/v1/namespaces/{namespace}/pods", body)
    assert refused.refused(422, "Invalid") == (
        'Pod "p" is invalid: spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount '
        "propagation is available only to privileged containers"
    )
    container["securityContext"] = {"privileged": True}
    created = (await api.post(f"/api/v1/namespaces/{namespace}/pods", body)).ok()
    assert created["spec"]["volumes"][0]["hostPath"] == {"path": "/tmp", "type": "DirectoryOrCreate"}
