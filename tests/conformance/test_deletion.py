"""How objects go away: grace, finalizers, preconditions, owners, namespaces."""

from typing import Any

import pytest

from tests.conformance.manifests import bound_pod, config_map, maps, owner, pod, pods
from tests.support.clusters.kube import KubeClient

pytestmark = pytest.mark.conformance


async def history(api: KubeClient, path: str, since: dict[str, Any], count: int) -> list[tuple[Any, ...]]:
    """What a watch from `since` tells: type, generation, grace and finalizers of each event."""
    async with api.watch(path, resourceVersion=since["metadata"]["resourceVersion"]) as watch:
        events = [await watch.next() for _ in range(count)]
    found = []
    for event in events:
        metadata = event["object"]["metadata"]
        grace, finalizers = metadata.get("deletionGracePeriodSeconds"), metadata.get("finalizers")
        found.append((event["type"], metadata.get("generation"), grace, finalizers))
    return found


async def test_unscheduled_pod_goes_at_once(api: KubeClient, namespace: str) -> None:
    made = (await api.post(pods(namespace), pod(schedulerName="nobody"))).ok()
    (await api.delete(pods(namespace, "p"))).ok()
    assert (await api.get(pods(namespace, "p"))).status == 404
    assert await history(api, pods(namespace), made, 2) == [("MODIFIED", 2, 0, None), ("DELETED", 2, 0, None)]


async def test_finished_pod_goes_at_once(api: KubeClient, namespace: str) -> None:
    (await api.post(pods(namespace), bound_pod())).ok()
    (await api.patch(pods(namespace, "p") + "/status", {"status": {"phase": "Failed"}})).ok()
    (await api.delete(pods(namespace, "p"))).ok()
    assert (await api.get(pods(namespace, "p"))).status == 404


async def test_graceful_deletion(api: KubeClient, namespace: str) -> None:
    made = (await api.post(pods(namespace), bound_pod())).ok()
    marked = (await api.delete(pods(namespace, "p"))).ok()
    assert marked["kind"] == "Pod"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked["metadata"]["deletionTimestamp"] > made["metadata"]["creationTimestamp"]
    shorter = (await api.delete(pods(namespace, "p"), gracePeriodSeconds="5")).ok()
    assert shorter["metadata"]["deletionTimestamp"] < marked["metadata"]["deletionTimestamp"]
    longer = (await api.delete(pods(namespace, "p"), gracePeriodSeconds="10")).ok()
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 5
    (await api.delete(pods(namespace, "p"), {"gracePeriodSeconds": 0})).ok()
    assert await history(api, pods(namespace), made, 4) == [
        ("MODIFIED", 2, 30, None),
        ("MODIFIED", 2, 5, None),
        ("MODIFIED", 2, 0, None),
        ("DELETED", 2, 0, None),
    ]


async def test_own_grace_period(api: KubeClient, namespace: str) -> None:
    (await api.post(pods(namespace), bound_pod(terminationGracePeriodSeconds=7))).ok()
    marked = (await api.delete(pods(namespace, "p"))).ok()
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_pod_finalizer_outlives_the_kubelet(api: KubeClient, namespace: str) -> None:
    body = bound_pod()
    body["metadata"]["finalizers"] = ["example.com/keep"]
    made = (await api.post(pods(namespace), body)).ok()
    (await api.delete(pods(namespace, "p"))).ok()
    (await api.delete(pods(namespace, "p"), gracePeriodSeconds="0")).ok()
    assert (await api.get(pods(namespace, "p"))).ok()["metadata"]["deletionGracePeriodSeconds"] == 0
    (await api.patch(pods(namespace, "p"), {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(pods(namespace, "p"))).status == 404
    assert await history(api, pods(namespace), made, 3) == [
        ("MODIFIED", 2, 30, ["example.com/keep"]),
        ("MODIFIED", 2, 0, ["example.com/keep"]),
        ("DELETED", 2, 0, ["example.com/keep"]),
    ]


async def test_finalizer_freed_before_the_kubelet_is_done(api: KubeClient, namespace: str) -> None:
    body = bound_pod()
    body["metadata"]["finalizers"] = ["example.com/keep"]
    (await api.post(pods(namespace), body)).ok()
    (await api.delete(pods(namespace, "p"))).ok()
    (await api.patch(pods(namespace, "p"), {"metadata": {"finalizers": None}})).ok()
    assert (await api.get(pods(namespace, "p"))).ok()["metadata"]["deletionGracePeriodSeconds"] == 30
    (await api.delete(pods(namespace, "p"), gracePeriodSeconds="0")).ok()
    assert (await api.get(pods(namespace, "p"))).status == 404


async def test_finalizers_of_other_kinds(api: KubeClient, namespace: str) -> None:
    (await api.post(maps(namespace), config_map(finalizers=["example.com/keep"]))).ok()
    marked = (await api.delete(maps(namespace, "c"))).ok()
    assert marked["kind"] == "ConfigMap"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    more = {"metadata": {"finalizers": ["example.com/keep", "example.com/more"]}}
    refused = await api.patch(maps(namespace, "c"), more)
    assert "no new finalizers can be added if the object is being deleted" in refused.refused(422, "Invalid")
    (await api.post(maps(namespace), config_map())).refused(409, "AlreadyExists")
    (await api.patch(maps(namespace, "c"), {"metadata": {"finalizers": []}})).ok()
    assert (await api.get(maps(namespace, "c"))).status == 404


async def test_answers_of_deletion(api: KubeClient, namespace: str) -> None:
    made = (await api.post(maps(namespace), config_map())).ok()
    answer = (await api.delete(maps(namespace, "c"))).ok()
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]}


async def test_preconditions(api: KubeClient, namespace: str) -> None:
    made = (await api.post(pods(namespace), bound_pod())).ok()
    answer = await api.delete(pods(namespace, "p"), {"preconditions": {"uid": "other"}})
    assert "the UID in the precondition (other) does not match the UID in record" in answer.refused(409, "Conflict")
    assert answer.body["message"].startswith('Operation cannot be fulfilled on Pod "p": ')
    answer = await api.delete(pods(namespace, "p"), {"preconditions": {"resourceVersion": "1"}})
    assert "the ResourceVersion in the precondition (1) does not match" in answer.refused(409, "Conflict")
    exact = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    (await api.delete(pods(namespace, "p"), {"preconditions": exact, "gracePeriodSeconds": 0})).ok()


async def test_delete_collection(api: KubeClient, namespace: str) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("d", "red")):
        (await api.post(maps(namespace), config_map(name, labels={"colour": colour}))).ok()
    (await api.delete(maps(namespace), labelSelector="colour=red")).ok()
    left = (await api.get(maps(namespace), labelSelector="colour")).ok()["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


async def test_dependents_follow_their_owner(api: KubeClient, namespace: str) -> None:
    anchor = (await api.post(maps(namespace), config_map("anchor"))).ok()
    child = pod(schedulerName="nobody")
    child["metadata"]["ownerReferences"] = [owner(anchor)]
    (await api.post(pods(namespace), child)).ok()
    grandchild = config_map("grandchild", ownerReferences=[owner((await api.get(pods(namespace, "p"))).ok(), "Pod")])
    (await api.post(maps(namespace), grandchild)).ok()
    (await api.delete(maps(namespace, "anchor"), propagationPolicy="Background")).ok()
    assert (await api.get(maps(namespace, "anchor"))).status == 404
    await api.gone(pods(namespace, "p"))
    await api.gone(maps(namespace, "grandchild"))


async def test_dependents_of_an_unknown_owner_go(api: KubeClient, namespace: str) -> None:
    anchor = (await api.post(maps(namespace), config_map("anchor"))).ok()
    (await api.delete(maps(namespace, "anchor"))).ok()
    (await api.post(maps(namespace), config_map("late", ownerReferences=[owner(anchor)]))).ok()
    await api.gone(maps(namespace, "late"))


async def test_one_living_owner_is_enough(api: KubeClient, namespace: str) -> None:
    first = (await api.post(maps(namespace), config_map("first"))).ok()
    second = (await api.post(maps(namespace), config_map("second"))).ok()
    references = [owner(first), {**owner(second), "controller": False}]
    (await api.post(maps(namespace), config_map("child", ownerReferences=references))).ok()
    witness = config_map("witness", ownerReferences=[owner(first)])
    (await api.post(maps(namespace), witness)).ok()
    (await api.delete(maps(namespace, "first"))).ok()
    await api.gone(maps(namespace, "witness"))
    assert (await api.get(maps(namespace, "child"))).status == 200
    (await api.delete(maps(namespace, "second"))).ok()
    await api.gone(maps(namespace, "child"))


async def test_orphans_stay(api: KubeClient, namespace: str) -> None:
    anchor = (await api.post(maps(namespace), config_map("anchor"))).ok()
    (await api.post(maps(namespace), config_map("child", ownerReferences=[owner(anchor)]))).ok()
    await api.eventually(maps(namespace, "child"), bool)
    (await api.delete(maps(namespace, "anchor"), propagationPolicy="Orphan")).ok()
    await api.gone(maps(namespace, "anchor"))
    child = (await api.get(maps(namespace, "child"))).ok()
    assert not child["metadata"].get("ownerReferences")


async def test_foreground_waits_for_blocking_dependents(api: KubeClient, namespace: str) -> None:
    anchor = (await api.post(maps(namespace), config_map("anchor"))).ok()
    reference = {**owner(anchor), "blockOwnerDeletion": True}
    body = config_map("child", ownerReferences=[reference], finalizers=["example.com/keep"])
    (await api.post(maps(namespace), body)).ok()
    marked = (await api.delete(maps(namespace, "anchor"), propagationPolicy="Foreground")).ok()
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.eventually(maps(namespace, "child"), lambda obj: "deletionTimestamp" in obj["metadata"])
    assert (await api.get(maps(namespace, "anchor"))).status == 200
    (await api.patch(maps(namespace, "child"), {"metadata": {"finalizers": None}})).ok()
    await api.gone(maps(namespace, "anchor"))


async def test_namespace_deletion(api: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    before = (await api.get(path)).ok()
    assert before["status"] == {"phase": "Active"}
    assert before["spec"] == {"finalizers": ["kubernetes"]}
    assert before["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}
    (await api.post(maps(namespace), config_map(finalizers=["example.com/keep"]))).ok()
    (await api.post(pods(namespace), pod(schedulerName="nobody"))).ok()
    marked = (await api.delete(path)).ok()
    assert marked["status"]["phase"] == "Terminating"
    refused = await api.post(maps(namespace), config_map("late"))
    assert refused.refused(403, "Forbidden") == (
        f'configmaps "late" is forbidden: unable to create new content in namespace {namespace} because it is being '
        "terminated"
    )
    assert refused.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    await api.gone(pods(namespace, "p"))
    held = await api.eventually(maps(namespace, "c"), lambda obj: "deletionTimestamp" in obj["metadata"])
    assert held["metadata"]["finalizers"] == ["example.com/keep"]
    assert (await api.get(path)).ok()["metadata"]["uid"] == before["metadata"]["uid"]
    (await api.patch(maps(namespace, "c"), {"metadata": {"finalizers": None}})).ok()
    await api.gone(path)


async def test_system_namespaces_stay(api: KubeClient) -> None:
    answer = await api.delete("/api/v1/namespaces/default")
    assert answer.refused(403, "Forbidden") == 'namespaces "default" is forbidden: this namespace may not be deleted'
    assert (await api.get("/api/v1/namespaces/kube-system")).ok()["metadata"]["uid"]


async def test_eviction(api: KubeClient, namespace: str) -> None:
    (await api.post(pods(namespace), bound_pod())).ok()
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": namespace}}
    answer = await api.post(pods(namespace, "p") + "/eviction", eviction)
    assert answer.status == 201
    evicted = (await api.get(pods(namespace, "p"))).ok()
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30
    condition = next(entry for entry in evicted["status"]["conditions"] if entry["type"] == "DisruptionTarget")
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
