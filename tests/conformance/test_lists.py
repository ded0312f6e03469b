"""Lists: pages, selectors and versions."""

import pytest

from tests.conformance.manifests import bound_pod, config_map, pod
from tests.support.clusters.kube import KubeClient

pytestmark = pytest.mark.conformance


async def names(api: KubeClient, path: str, **params: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.get(path, **params)).ok()["items"]]


async def test_items_are_sorted_and_without_kind(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("b", "a", "c"):
        (await api.post(path, config_map(name, labels={"mine": "yes"}))).ok()
    listed = (await api.get(path, labelSelector="mine")).ok()
    assert listed["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "c"]
    assert all("kind" not in item and "apiVersion" not in item for item in listed["items"])
    everywhere = (await api.get("/api/v1/configmaps", labelSelector="mine")).ok()
    found = [item["metadata"]["name"] for item in everywhere["items"] if item["metadata"]["namespace"] == namespace]
    assert found == ["a", "b", "c"]


async def test_pages_show_one_moment(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    for number in range(5):
        (await api.post(path, bound_pod(f"p{number}"))).ok()
    first = (await api.get(path, limit="2")).ok()
    assert first["metadata"]["remainingItemCount"] == 3
    (await api.delete(f"{path}/p3", gracePeriodSeconds="0")).ok()
    (await api.post(path, bound_pod("p9"))).ok()
    found = [item["metadata"]["name"] for item in first["items"]]
    page = first
    while page["metadata"].get("continue"):
        page = (await api.get(path, **{"limit": "2", "continue": page["metadata"]["continue"]})).ok()
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        found += [item["metadata"]["name"] for item in page["items"]]
    assert found == ["p0", "p1", "p2", "p3", "p4"]
    assert "remainingItemCount" not in page["metadata"]


async def test_pages_of_a_selection(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    for number in range(6):
        made = bound_pod(f"p{number}")
        made["metadata"]["labels"] = {"even": str(number % 2 == 0).lower()}
        (await api.post(path, made)).ok()
    first = (await api.get(path, limit="2", labelSelector="even=true")).ok()
    assert [item["metadata"]["name"] for item in first["items"]] == ["p0", "p2"]
    assert "remainingItemCount" not in first["metadata"]
    token = first["metadata"]["continue"]
    rest = (await api.get(path, **{"limit": "2", "labelSelector": "even=true", "continue": token})).ok()
    assert [item["metadata"]["name"] for item in rest["items"]] == ["p4"]
    assert not rest["metadata"].get("continue")


SELECTIONS = [
    ("a=1", ["x", "z"]),
    ("a==1,b=2", ["z"]),
    ("a!=1", ["w", "y"]),
    ("a in (1,3)", ["x", "y", "z"]),
    ("a notin (1)", ["w", "y"]),
    ("b", ["w", "z"]),
    ("!b", ["x", "y"]),
    ("a,!b", ["x", "y"]),
    ("a=", []),
]


async def test_label_selectors(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for name, labels in (("x", {"a": "1"}), ("y", {"a": "3"}), ("z", {"a": "1", "b": "2"}), ("w", {"b": "1"})):
        (await api.post(path, {"metadata": {"name": name, "labels": labels}})).ok()
    for selector, expected in SELECTIONS:
        assert await names(api, path, labelSelector=selector) == expected, selector


@pytest.mark.parametrize("selector", ["a in x", "a=b=c", "=a", "a b", "a=b c", "a in (1", "-a=1"])
async def test_bad_label_selectors(api: KubeClient, namespace: str, selector: str) -> None:
    answer = await api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
    answer.refused(400, "BadRequest")


async def test_field_selectors(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(path, bound_pod("x"))).ok()
    (await api.post(path, pod("y", schedulerName="nobody"))).ok()
    (await api.patch(f"{path}/x/status", {"status": {"phase": "Running"}})).ok()
    assert await names(api, path, fieldSelector="metadata.name=x") == ["x"]
    assert await names(api, path, fieldSelector="metadata.name!=x") == ["y"]
    assert await names(api, path, fieldSelector="spec.nodeName=nobody") == ["x"]
    assert await names(api, path, fieldSelector="spec.nodeName=") == ["y"]
    assert await names(api, path, fieldSelector="status.phase=Running,spec.nodeName=nobody") == ["x"]
    assert await names(api, "/api/v1/pods", fieldSelector=f"metadata.namespace={namespace}") == ["x", "y"]


async def test_unknown_field_selectors(api: KubeClient, namespace: str) -> None:
    root = f"/api/v1/namespaces/{namespace}"
    answer = await api.get(f"{root}/pods", fieldSelector="spec.foo=x")
    assert answer.refused(400, "BadRequest") == "field label not supported: spec.foo"
    answer = await api.get(f"{root}/configmaps", fieldSelector="data.x=x")
    assert answer.refused(400, "BadRequest") == (
        '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


async def test_events_by_object(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    for name, uid in (("e1", "u1"), ("e2", "u2")):
        about = {"kind": "Pod", "namespace": namespace, "name": "p", "uid": uid}
        event = {"metadata": {"name": name}, "involvedObject": about, "reason": "Test", "type": "Normal", "count": 1}
        (await api.post(path, event)).ok()
    assert await names(api, path, fieldSelector="involvedObject.uid=u2") == ["e2"]
    stray = {"metadata": {"name": "e3"}, "involvedObject": {"namespace": "other"}}
    (await api.post(path, stray)).refused(422, "Invalid")


async def test_versions_of_lists(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    created = (await api.post(path, bound_pod())).ok()
    # A list at version 0 is served from kube-apiserver's cache, which may be older than the pod. A list at the pod's
    # version waits for the cache.
    assert await names(api, path, resourceVersion=created["metadata"]["resourceVersion"]) == ["p"]
    assert await names(api, path, resourceVersion="0") == ["p"]
    answer = await api.get(path, resourceVersion="abc")
    assert "invalid resource version" in answer.refused(400, "BadRequest")
    answer = await api.get(path, resourceVersion="99999999999")
    assert "Too large resource version" in answer.refused(504, "Timeout")
    answer = await api.get(path, **{"limit": "1", "continue": "abc"})
    assert "invalid continue token" in answer.refused(400, "BadRequest")
