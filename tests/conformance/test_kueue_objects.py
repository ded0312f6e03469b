"""Kueue's API: what it serves and refuses, and which pods it gates."""

from typing import Any

import pytest

from tests.conformance.manifests import pod
from tests.conformance.test_scheduling import declared_node, selecting
from tests.support.clusters.kube import KubeClient
from tests.support.clusters.kueue import API, NOW, Json, Queues, holds, pod_set, workload

pytestmark = pytest.mark.conformance

KINDS = {
    "workloads": "Workload",
    "workloads/status": "Workload",
    "localqueues": "LocalQueue",
    "localqueues/status": "LocalQueue",
    "clusterqueues": "ClusterQueue",
    "clusterqueues/status": "ClusterQueue",
    "cohorts": "Cohort",
    "cohorts/status": "Cohort",
    "resourceflavors": "ResourceFlavor",
    "workloadpriorityclasses": "WorkloadPriorityClass",
}
GATES = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]


async def test_the_api_is_discovered(api: KubeClient, queue: Queues) -> None:
    served = {entry["name"]: entry["kind"] for entry in (await api.get(API)).ok()["resources"]}
    assert served.items() >= KINDS.items()
    assert (await api.get(queue.cluster_queue("q"))).ok()["spec"].items() >= {
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
    }.items()
    async with api.watch(queue.workloads, resourceVersion="0") as watch:
        created = await queue.submit("w", "q")
        assert created["spec"]["active"] is True
        event = await watch.until(lambda event: holds("Admitted")(event["object"]))
        assert event["object"]["metadata"]["name"] == "w"


async def test_tables(api: KubeClient, queue: Queues) -> None:
    await queue.submit("w", "q")
    await queue.admitted("w")
    await api.eventually(f"{queue.local_queues}/q", lambda obj: obj.get("status", {}).get("admittedWorkloads"))
    name = queue.wide("q")
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    for path, columns, cells in (
        (queue.workloads, ["Name", "Queue", "Reserved in", "Admitted", "Finished", "Age"], ["w", "q", name, "True"]),
        (queue.local_queues, ["Name", "ClusterQueue", "Pending Workloads", "Admitted Workloads"], ["q", name, 0, 1]),
        (queue.cluster_queue("q"), ["Name", "Cohort", "Strategy", "Pending Workloads", "Admitted Workloads"], [name]),
    ):
        table = (await api.request("GET", path, None, accept, {})).ok()
        assert [column["name"] for column in table["columnDefinitions"]] == columns
        assert table["rows"][0]["cells"][: len(cells)] == cells


async def test_invalid_objects_are_refused(api: KubeClient, queue: Queues) -> None:
    unnamed, nameless = workload("w", "q", pod_set("Bad_Name")), workload("w", "Bad_Queue")
    without_template = workload("w", "q")
    del without_template["spec"]["podSets"][0]["template"]
    without_pod_sets = workload("w", "q")
    without_pod_sets["spec"]["podSets"] = []
    without_priority = workload(
        "w", "q", priorityClassRef={"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "p"}
    )
    del without_priority["spec"]["priority"]
    queue_body = {"apiVersion": unnamed["apiVersion"], "kind": "LocalQueue", "metadata": {"name": "l"}}
    many = [pod_set(f"p{number}") for number in range(19)]
    for path, body, words in (
        (
            queue.workloads,
            without_pod_sets,
            "spec.podSets: Invalid value: 0: spec.podSets in body should have at least",
        ),
        (queue.workloads, workload("w", "q", *many), "spec.podSets: Too many: 19: must have at most "),
        (queue.workloads, workload("w", "q", pod_set(), pod_set()), 'podSets[1]: Duplicate value: {"name":"main"}'),
        (queue.workloads, workload("w", "q", pod_set(count=-1)), "spec.podSets[0].count: Invalid value: -1: "),
        (queue.workloads, unnamed, 'spec.podSets[0].name: Invalid value: "Bad_Name": '),
        (queue.workloads, nameless, 'spec.queueName: Invalid value: "Bad_Queue": '),
        (queue.workloads, without_template, "spec.podSets[0].template"),
        (queue.workloads, without_priority, "spec: Invalid value: priority should not be nil when priorityClassRef is"),
        (queue.local_queues, queue_body | {"spec": {"clusterQueue": ""}}, 'spec.clusterQueue: Invalid value: "": '),
    ):
        assert words in (await api.post(path, body)).refused(422, "Invalid")
    stop = await api.patch(queue.cluster_queue("q"), {"spec": {"stopPolicy": "Now"}})
    assert 'spec.stopPolicy: Unsupported value: "Now"' in stop.refused(422, "Invalid")
    change = await api.patch(f"{queue.local_queues}/q", {"spec": {"clusterQueue": "other"}})
    assert 'spec.clusterQueue: Invalid value: "other": field is immutable' in change.refused(422, "Invalid")


async def test_what_may_change_while_quota_is_reserved(api: KubeClient, queue: Queues) -> None:
    await queue.submit("runs", "q", pod_set(count=3))
    await queue.admitted("runs")
    path = f"{queue.workloads}/runs"
    for change, code, words in (
        ({"queueName": "other"}, 422, "queueName is immutable while workload quota reserved"),
        ({"podSets": [pod_set(count=4)]}, 403, "field is immutable"),
        ({"podSets": [pod_set(count=3, cpu="2")]}, 403, "field is immutable"),
        ({"podSets": [pod_set(count=3), pod_set("b")]}, 422, "must have the same number of podSets as the spec"),
    ):
        answer = await api.patch(path, {"spec": change})
        assert answer.status == code, answer.body
        assert words in answer.body["message"]
    assert (await api.patch(path, {"spec": {"priority": 7}})).status == 200

    without = await queue.write_status("runs", lambda status: status.pop("admission"))
    # Kueue 0.15 refuses it by a panic.
    assert without.status in (403, 500)
    assert 'admission webhook "vworkload.kb.io" denied the request: ' in without.body["message"]

    async def refused(change: Any) -> str:
        return (await queue.write_status("runs", change)).refused(422, "Invalid")

    timeless = {"type": "PodsReady", "status": "True", "reason": "Ready", "message": ""}
    assert "lastTransitionTime: Required value" in await refused(lambda status: status["conditions"].append(timeless))
    unknown = timeless | {"status": "Maybe", "lastTransitionTime": NOW}
    assert 'status: Unsupported value: "Maybe"' in await refused(lambda status: status["conditions"].append(unknown))


async def test_pods_for_a_queue_are_gated(api: KubeClient, namespace: str, queues: Queues) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"

    async def create(name: str, **metadata: Json) -> Json:
        body = pod(name)
        body["metadata"] |= metadata
        found: Json = (await api.post(pods, body)).ok()
        return found

    plain = await create("plain")
    assert "schedulingGates" not in plain["spec"]
    labelled = await create("labelled", labels={"kueue.x-k8s.io/queue-name": "missing"})
    await queues.add_local_queue("default", "nothing")
    # The webhook knows the queue once its controller has seen it.
    await api.eventually(f"{queues.local_queues}/default", holds("Active", "False"))
    captured = await create("captured")
    for found, name in ((labelled, "missing"), (captured, "default")):
        assert found["spec"]["schedulingGates"] == GATES
        assert found["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]
        assert found["metadata"]["labels"] == {
            "kueue.x-k8s.io/managed": "true",
            "kueue.x-k8s.io/queue-name": name,
        }
        gated = await api.eventually(f"{pods}/{found['metadata']['name']}", lambda obj: obj["status"]["conditions"])
        assert gated["status"]["conditions"][0]["reason"] == "SchedulingGated"
        (await api.delete(f"{pods}/{found['metadata']['name']}")).ok()
        await api.gone(f"{pods}/{found['metadata']['name']}")


async def test_pods_with_a_suspending_parent_get_only_gates(api: KubeClient, namespace: str, queues: Queues) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await queues.add_local_queue("default", "nothing")
    async with declared_node(api) as node:
        body = selecting(node)
        body["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-suspending-parent": "example.com/owner"}
        found = (await api.post(pods, body)).ok()
        assert found["spec"]["schedulingGates"] == GATES
        assert "labels" not in found["metadata"]
        added = await api.patch(f"{pods}/p", {"spec": {"schedulingGates": [*GATES, {"name": "example.com/other"}]}})
        assert "only deletion is allowed, but found new scheduling gate 'example.com/other'" in added.refused(
            422, "Invalid"
        )
        opened = {"metadata": {"finalizers": None}, "spec": {"schedulingGates": None}}
        (await api.patch(f"{pods}/p", opened)).ok()
        bound = await api.eventually(f"{pods}/p", lambda obj: obj["spec"].get("nodeName") == node)
        assert "schedulingGates" not in bound["spec"]
        assert (await api.get(queues.workloads)).ok()["items"] == []
