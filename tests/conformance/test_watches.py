"""Watches: order, selections, bookmarks and ends."""

from typing import Any

import pytest

from tests.conformance.manifests import bound_pod, config_map
from tests.support.clusters.kube import KubeClient

pytestmark = pytest.mark.conformance


def labelled(name: str, value: str) -> dict[str, object]:
    made = bound_pod(name)
    made["metadata"]["labels"] = {"colour": value}
    return made


async def version_now(api: KubeClient, path: str) -> str:
    return str((await api.get(path)).ok()["metadata"]["resourceVersion"])


async def test_life_of_an_object(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    start = await version_now(api, path)
    async with api.watch(path, resourceVersion=start) as watch:
        created = (await api.post(path, bound_pod())).ok()
        (await api.patch(f"{path}/p", {"metadata": {"labels": {"a": "b"}}})).ok()
        (await api.delete(f"{path}/p", gracePeriodSeconds="0")).ok()
        events = [await watch.next() for _ in range(4)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert events[0]["object"] == created
    assert events[0]["object"]["kind"] == "Pod"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert {event["object"]["metadata"]["uid"] for event in events} == {created["metadata"]["uid"]}


async def test_from_a_version_replays(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    first = (await api.post(path, config_map("a"))).ok()
    (await api.post(path, config_map("b"))).ok()
    (await api.delete(f"{path}/a")).ok()
    async with api.watch(path, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        events = [await watch.next() for _ in range(2)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]


@pytest.mark.parametrize("version", ["", "0"])
async def test_without_a_version_starts_with_the_state(api: KubeClient, namespace: str, version: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(path, bound_pod("a"))).ok()
    (await api.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})).ok()
    params = {"resourceVersion": version} if version else {}
    async with api.watch(path, **params) as watch:
        event = await watch.until(lambda event: event["object"]["metadata"].get("labels") == {"x": "y"})
        assert event["object"]["metadata"]["name"] == "a"
        (await api.post(path, bound_pod("b"))).ok()
        event = await watch.next()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_leaving_and_entering_a_selection(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    start = await version_now(api, path)
    async with api.watch(path, resourceVersion=start, labelSelector="colour=red") as watch:
        (await api.post(path, labelled("p", "blue"))).ok()
        changed: dict[str, Any] = {}
        for value in ("red", "blue", "red"):
            changed = (await api.patch(f"{path}/p", {"metadata": {"labels": {"colour": value}}})).ok()
        (await api.delete(f"{path}/p", gracePeriodSeconds="0")).ok()
        events = [await watch.next() for _ in range(3)]
        last = await watch.until(lambda event: event["type"] == "DELETED")
    assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
    left = events[1]["object"]["metadata"]
    assert left["labels"] == {"colour": "red"}
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) < int(left["resourceVersion"])
    assert events[2]["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
    assert last["object"]["metadata"]["labels"] == {"colour": "red"}


async def test_field_selection(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    start = await version_now(api, path)
    async with api.watch(path, resourceVersion=start, fieldSelector="status.phase=Running") as watch:
        (await api.post(path, bound_pod())).ok()
        for phase in ("Running", "Succeeded"):
            (await api.patch(f"{path}/p/status", {"status": {"phase": phase}})).ok()
        events = [await watch.next() for _ in range(2)]
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    assert events[1]["object"]["status"]["phase"] == "Running"


async def test_cluster_wide(api: KubeClient, namespace: str) -> None:
    start = await version_now(api, "/api/v1/pods")
    async with api.watch("/api/v1/pods", resourceVersion=start) as watch:
        (await api.post(f"/api/v1/namespaces/{namespace}/pods", bound_pod("here"))).ok()
        event = await watch.until(lambda event: event["object"]["metadata"].get("namespace") == namespace)
    assert event["object"]["metadata"]["name"] == "here"


async def test_ends_by_itself(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    start = await version_now(api, path)
    async with api.watch(path, resourceVersion=start, timeoutSeconds="1") as watch:
        assert await watch.rest() == []


async def test_bookmarks(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    start = await version_now(api, path)
    (await api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "c"}})).ok()
    params = {"resourceVersion": start, "allowWatchBookmarks": "true", "timeoutSeconds": "5"}
    async with api.watch(path, **params) as watch:
        events = await watch.rest()
    assert events
    assert {event["type"] for event in events} == {"BOOKMARK"}
    last = events[-1]["object"]
    assert last["kind"] == "Pod"
    assert int(last["metadata"]["resourceVersion"]) >= int(start)
    assert "name" not in last["metadata"]


async def test_initial_events(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(path, bound_pod())).ok()
    params = {"sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    refused = await api.get(path, watch="true", **params)
    refused.refused(422, "Invalid")
    async with api.watch(path, resourceVersionMatch="NotOlderThan", **params) as watch:
        assert (await watch.next())["type"] == "ADDED"
        marker = await watch.next()
    assert marker["type"] == "BOOKMARK"
    assert marker["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_bad_version(api: KubeClient, namespace: str) -> None:
    answer = await api.get(f"/api/v1/namespaces/{namespace}/pods", watch="true", resourceVersion="abc")
    assert answer.status == 500
    assert 'parsing "abc": invalid syntax' in answer.body["message"]
