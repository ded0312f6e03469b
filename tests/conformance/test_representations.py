"""What kubectl needs beside plain JSON objects: tables, protobuf bodies, reviews of its own rights, OpenAPI."""

import json
from typing import Any

import pytest

from tests.conformance.manifests import bound_pod, config_map
from tests.support.clusters import protobuf
from tests.support.clusters.kube import Answer, KubeClient
from tests.support.clusters.protobuf import field

pytestmark = pytest.mark.conformance

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
COLUMNS = ["Name", "Data", "Age"]
# What `kubectl create secret generic x --from-literal=a=b` sends, with a label; client-go writes the empty fields, too.
METADATA = field(1, "x") + b"".join(field(number, "") for number in range(2, 7)) + field(7, 0) + field(8, b"")
LABELS = field(11, field(1, "l") + field(2, "m"))
SECRET = protobuf.body(
    "Secret", field(1, METADATA + LABELS) + field(2, field(1, "a") + field(2, "b")) + field(3, "Opaque")
)


async def table(api: KubeClient, path: str, **params: str) -> Any:
    found = (await api.request("GET", path, None, {"Accept": TABLE}, params)).ok()
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return found


async def test_a_list_as_a_table(api: KubeClient, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b", "c"):
        (await api.post(maps, {**config_map(name), "metadata": {"name": name, "labels": {"mine": "yes"}}})).ok()
    mine = {"labelSelector": "mine=yes"}
    whole = await table(api, maps, **mine)
    assert [column["name"] for column in whole["columnDefinitions"]] == COLUMNS
    assert [row["cells"][0] for row in whole["rows"]] == ["a", "b", "c"]
    assert {row["object"]["kind"] for row in whole["rows"]} == {"PartialObjectMetadata"}
    assert whole["rows"][0]["object"]["metadata"]["labels"] == {"mine": "yes"}
    page = await table(api, maps, limit="2", **mine)
    rest = await table(api, maps, limit="2", **mine, **{"continue": page["metadata"]["continue"]})
    assert [row["cells"][0] for row in (*page["rows"], *rest["rows"])] == ["a", "b", "c"]
    plain = (await table(api, maps, includeObject="None", **mine))["rows"][0]
    assert not plain.get("object")
    full = (await table(api, maps, includeObject="Object", **mine))["rows"][0]["object"]
    assert (full["kind"], full["metadata"]["name"]) == ("ConfigMap", "a")


async def test_an_object_as_a_table(api: KubeClient, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    made = (await api.post(maps, config_map("a"))).ok()
    found = await table(api, f"{maps}/a")
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert [len(row["cells"]) for row in found["rows"]] == [len(COLUMNS)]


async def test_a_watch_as_tables(api: KubeClient, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    start = (await api.get(maps)).ok()["metadata"]["resourceVersion"]
    async with api.watch(maps, accept=TABLE, resourceVersion=start, labelSelector="mine=yes") as watch:
        mine = {"metadata": {"name": "a", "labels": {"mine": "yes"}}}
        (await api.post(maps, mine)).ok()
        (await api.patch(f"{maps}/a", {"data": {"k": "v"}})).ok()
        (await api.delete(f"{maps}/a")).ok()
        events = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    tables = [event["object"] for event in events]
    assert [column["name"] for column in tables[0]["columnDefinitions"]] == COLUMNS
    assert not any(found.get("columnDefinitions") for found in tables[1:])
    assert [found["rows"][0]["cells"][:2] for found in tables] == [["a", 0], ["a", 1], ["a", 1]]


@pytest.mark.parametrize(
    "accept",
    ["application/json", "*/*", "application/json, application/json;as=Table;v=v1;g=meta.k8s.io", "text/x, */*"],
)
async def test_who_asks_for_no_table_gets_none(api: KubeClient, namespace: str, accept: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await api.request("GET", path, None, {"Accept": accept}, {})).ok()["kind"] == "ConfigMapList"


async def test_a_gated_pod_is_shown_as_such(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    gated = bound_pod()
    del gated["spec"]["nodeName"]
    gated["spec"]["schedulingGates"] = [{"name": "example.org/wait"}]
    made = (await api.post(pods, gated)).ok()
    condition = next(entry for entry in made["status"]["conditions"] if entry["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
    assert (await table(api, pods))["rows"][0]["cells"][2] == "SchedulingGated"


async def test_a_body_in_protobuf(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    headers = {"Content-Type": protobuf.MEDIA_TYPE, "Accept": "application/json"}

    async def send(body: bytes) -> Answer:
        return await api.request("POST", path, body, headers, {})

    made = (await send(SECRET)).ok()
    assert (made["data"], made["type"], made["metadata"]["labels"]) == ({"a": "Yg=="}, "Opaque", {"l": "m"})
    (await send(SECRET)).refused(409, "AlreadyExists")
    (await send(SECRET[:30])).refused(400, "BadRequest")


async def test_reviews_of_the_callers_own_rights(api: KubeClient) -> None:
    async def ask(group: str, kind: str, spec: dict[str, Any]) -> Answer:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        return await api.post(f"/apis/{group}/v1/{kind.lower()}s", body)

    attributes = {"namespace": "default", "verb": "create", "resource": "pods"}
    allowed = (await ask("authorization.k8s.io", "SelfSubjectAccessReview", {"resourceAttributes": attributes})).ok()
    assert allowed["status"]["allowed"] is True
    assert allowed["spec"] == {"resourceAttributes": attributes}
    (await ask("authorization.k8s.io", "SelfSubjectAccessReview", {})).refused(422, "Invalid")
    rules = (await ask("authorization.k8s.io", "SelfSubjectRulesReview", {"namespace": "default"})).ok()
    assert any(rule["verbs"] == ["*"] for rule in rules["status"]["resourceRules"])
    me = (await ask("authentication.k8s.io", "SelfSubjectReview", {})).ok()
    assert me["status"]["userInfo"]["username"]
    (await api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).refused(405, "MethodNotAllowed")


async def test_openapi_tells_of_each_group(api: KubeClient) -> None:
    answer = (await api.get("/openapi/v3")).ok()
    # A real server calls its index plain text.
    index = (json.loads(answer) if isinstance(answer, str) else answer)["paths"]
    for group_version, kind in (("api/v1", "Pod"), ("apis/apps/v1", "StatefulSet")):
        found = (await api.get(index[group_version]["serverRelativeURL"].partition("?")[0])).ok()
        kinds = [
            entry["kind"]
            for schema in found["components"]["schemas"].values()
            for entry in schema.get("x-kubernetes-group-version-kind", ())
        ]
        assert kind in kinds


async def test_server_side_apply_is_there_or_refused_in_words(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    body = json.dumps({"apiVersion": "v1", **config_map("a"), "kind": "ConfigMap"}).encode()
    answer = await api.call("PATCH", path, body, content_type="application/apply-patch+yaml", fieldManager="me")
    if api.cluster.real:
        assert answer.status == 201
    else:
        assert "no server-side apply" in answer.refused(415, "UnsupportedMediaType")
