"""Scheduling, quota and node lifecycle. Nodes here are only declared: nothing runs on them."""

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.manifests import pod, requesting
from tests.support.clusters.cluster import REAL_CLUSTER, running_embedded_cluster
from tests.support.clusters.kube import STRATEGIC, Cluster, KubeClient, connect

pytestmark = pytest.mark.conformance

CAPACITY = {"cpu": "2", "memory": "1Gi", "pods": "3", "ephemeral-storage": "1Gi", "example.com/gpu": "1"}


@asynccontextmanager
async def declared_node(api: KubeClient, **spec: Any) -> AsyncIterator[str]:
    """A Ready node that only pods of this test select, and that goes on renewing its lease; gone afterwards."""
    async with silent_node(api, **spec) as node, asyncio.TaskGroup() as group:

        async def keep_renewing() -> None:
            while True:
                await renew(api, node)
                await asyncio.sleep(0.5)

        task = group.create_task(keep_renewing())
        yield node
        task.cancel()


@asynccontextmanager
async def silent_node(api: KubeClient, **spec: Any) -> AsyncIterator[str]:
    """A Ready node that is not heard of again; gone afterwards."""
    name = f"node-{secrets.token_hex(4)}"
    node = {
        "metadata": {"name": name, "labels": {"only": name, "zone": "a"}},
        "spec": spec,
        "status": {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
    created = (await api.post("/api/v1/nodes", node)).ok()
    assert {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"} in created["spec"]["taints"]
    await renew(api, name)
    await api.eventually(f"/api/v1/nodes/{name}", lambda found: not not_ready(found))
    try:
        yield name
    finally:
        await api.delete(f"/api/v1/nodes/{name}")
        await api.delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")


async def renew(api: KubeClient, node: str) -> None:
    stamp = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": stamp}
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    answer = await api.post(path, {"metadata": {"name": node}, "spec": spec})
    if answer.status == 409:
        answer = await api.patch(f"{path}/{node}", {"spec": spec})
    answer.ok()


def not_ready(node: dict[str, Any]) -> bool:
    taints = node["spec"].get("taints") or []
    return any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


def selecting(node: str, name: str = "p", **amounts: str) -> dict[str, Any]:
    body = requesting(name, **amounts)
    body["spec"]["nodeSelector"] = {"only": node}
    return body


def scheduled(body: dict[str, Any]) -> dict[str, Any]:
    conditions = body["status"].get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == "PodScheduled"), {})


async def unschedulable(api: KubeClient, namespace: str, body: dict[str, Any]) -> str:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(pods, body)).ok()
    found = await api.eventually(
        f"{pods}/{body['metadata']['name']}", lambda obj: scheduled(obj).get("status") == "False"
    )
    assert scheduled(found)["reason"] == "Unschedulable"
    return str(scheduled(found)["message"])


async def test_a_fitting_pod_is_bound(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with declared_node(api) as node:
        (await api.post(pods, selecting(node, cpu="1"))).ok()
        bound = await api.eventually(f"{pods}/p", lambda obj: obj["spec"].get("nodeName") == node)
        assert scheduled(bound)["status"] == "True"
        assert bound["status"]["phase"] == "Pending"
        assert bound["metadata"]["generation"] == 1


REFUSALS: list[tuple[str, dict[str, str], str]] = [
    ("cpu", {"cpu": "3"}, "1 Insufficient cpu"),
    ("memory", {"memory": "2Gi"}, "1 Insufficient memory"),
    ("both", {"cpu": "3", "memory": "2Gi"}, "1 Insufficient cpu, 1 Insufficient memory"),
    ("storage", {"ephemeral-storage": "2Gi"}, "1 Insufficient ephemeral-storage"),
]


async def test_refusals_in_the_schedulers_words(api: KubeClient, namespace: str) -> None:
    async with declared_node(api) as node:
        for name, amounts, expected in REFUSALS:
            message = await unschedulable(api, namespace, selecting(node, name, **amounts))
            assert " nodes are available: " in message
            assert message.startswith("0/")
            assert expected in message
            assert "Preemption is not helpful for scheduling." in message
        gpu = selecting(node, "gpu")
        gpu["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "2"}}
        assert "1 Insufficient example.com/gpu" in await unschedulable(api, namespace, gpu)
        whole = selecting(node, "whole", cpu="1")
        whole["spec"]["resources"] = {"requests": {"cpu": "3"}}
        assert "1 Insufficient cpu" in await unschedulable(api, namespace, whole)


# The resources of a pod as a whole, those of one of its containers, the completed requests of the pod, and its class.
WHOLE: list[tuple[dict[str, Any], dict[str, Any], dict[str, str], str]] = [
    ({"limits": {"cpu": "64", "memory": "1Gi"}}, {}, {"cpu": "64", "memory": "1Gi"}, "Guaranteed"),
    ({"limits": {"cpu": "64"}}, {"limits": {"cpu": "2"}}, {"cpu": "2"}, "Burstable"),
    ({"limits": {"cpu": "64"}}, {"requests": {"memory": "1Gi"}}, {"cpu": "64", "memory": "1Gi"}, "Burstable"),
    ({"limits": {"cpu": "64"}, "requests": {"cpu": "3"}}, {"requests": {"cpu": "2"}}, {"cpu": "3"}, "Burstable"),
]


async def test_the_requests_of_a_pod_as_a_whole_are_completed(api: KubeClient, namespace: str) -> None:
    for index, (whole, of_container, requests, qos) in enumerate(WHOLE):
        body = selecting("no-node", f"whole-{index}")
        body["spec"]["resources"] = whole
        body["spec"]["containers"][0]["resources"] = of_container
        created = (await api.post(f"/api/v1/namespaces/{namespace}/pods", body)).ok()
        assert created["spec"]["resources"]["requests"] == requests
        assert created["status"]["qosClass"] == qos


async def test_selectors_taints_and_cordons(api: KubeClient, namespace: str) -> None:
    taint = {"key": "example.com/mine", "value": "yes", "effect": "NoSchedule"}
    async with declared_node(api, taints=[taint]) as node:
        assert "untolerated taint" in await unschedulable(api, namespace, selecting(node, "tainted"))
        tolerant = selecting(node, "tolerant")
        tolerant["spec"]["tolerations"] = [{"key": "example.com/mine", "operator": "Exists"}]
        tolerant["spec"]["nodeSelector"]["zone"] = "b"
        message = await unschedulable(api, namespace, tolerant)
        assert "node(s) didn't match Pod's node affinity/selector" in message
        tolerant["metadata"]["name"] = "affine"
        del tolerant["spec"]["nodeSelector"]["zone"]
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        tolerant["spec"]["affinity"] = {"nodeAffinity": required}
        pods = f"/api/v1/namespaces/{namespace}/pods"
        (await api.post(pods, tolerant)).ok()
        await api.eventually(f"{pods}/affine", lambda obj: obj["spec"].get("nodeName") == node)
        (await api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})).ok()
        late = {**tolerant, "metadata": {"name": "late"}}
        assert "node(s) were unschedulable" in await unschedulable(api, namespace, late)


async def test_room_that_is_freed_is_used(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with declared_node(api) as node:
        (await api.post(pods, selecting(node, "first", cpu="2"))).ok()
        await api.eventually(f"{pods}/first", lambda obj: obj["spec"].get("nodeName") == node)
        assert "1 Insufficient cpu" in await unschedulable(api, namespace, selecting(node, "second", cpu="1"))
        (await api.patch(f"{pods}/first/status", {"status": {"phase": "Succeeded"}})).ok()
        await api.eventually(f"{pods}/second", lambda obj: obj["spec"].get("nodeName") == node)


async def test_a_refusal_is_also_an_event(api: KubeClient, namespace: str) -> None:
    async with declared_node(api) as node:
        message = await unschedulable(api, namespace, selecting(node, cpu="3"))

        def saying_it(body: dict[str, Any]) -> list[dict[str, Any]]:
            """Other nodes that come and go have the scheduler look, and count, again."""
            return [item for item in body["items"] if item["message"] == message]

        event = saying_it(await api.eventually(f"/api/v1/namespaces/{namespace}/events", saying_it))[0]
        assert event["reason"] == "FailedScheduling"
        assert event["type"] == "Warning"
        assert event["involvedObject"]["name"] == "p"
        assert event["reportingComponent"] == "default-scheduler"
        assert event["eventTime"]


async def test_foreign_schedulers_are_left_alone(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with declared_node(api) as node:
        theirs = selecting(node, "theirs")
        theirs["spec"]["schedulerName"] = "someone-else"
        (await api.post(pods, theirs)).ok()
        (await api.post(pods, selecting(node, "ours"))).ok()
        await api.eventually(f"{pods}/ours", lambda obj: obj["spec"].get("nodeName") == node)
        left = (await api.get(f"{pods}/theirs")).ok()
        assert "nodeName" not in left["spec"]
        assert not scheduled(left)


async def test_binding_by_hand(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(pods, pod(schedulerName="nobody"))).ok()
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "nobody"}}
    assert (await api.post(f"{pods}/p/binding", binding)).status == 201
    bound = (await api.get(f"{pods}/p")).ok()
    assert bound["spec"]["nodeName"] == "nobody"
    assert scheduled(bound)["status"] == "True"
    again = await api.post(f"{pods}/p/binding", binding)
    assert again.refused(409, "Conflict") == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "nobody"'
    )


async def test_quota(api: KubeClient, namespace: str) -> None:
    root = f"/api/v1/namespaces/{namespace}"
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "requests.cpu": "1"}}}
    (await api.post(f"{root}/resourcequotas", quota)).ok()
    await api.eventually(f"{root}/resourcequotas/q", lambda obj: obj["status"].get("hard"))
    refused = await api.post(f"{root}/pods", pod())
    assert refused.refused(403, "Forbidden") == (
        'pods "p" is forbidden: failed quota: q: must specify requests.cpu for: main'
    )
    refused = await api.post(f"{root}/pods", requesting("p", cpu="2"))
    assert refused.refused(403, "Forbidden") == (
        'pods "p" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: '
        "requests.cpu=1"
    )
    (await api.post(f"{root}/pods", requesting("p", cpu="500m"))).ok()
    used = {"pods": "1", "requests.cpu": "500m"}
    await api.eventually(f"{root}/resourcequotas/q", lambda obj: obj["status"].get("used") == used)
    refused = await api.post(f"{root}/pods", requesting("o", cpu="100m"))
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in refused.refused(403, "Forbidden")
    (await api.delete(f"{root}/pods/p", gracePeriodSeconds="0")).ok()
    await api.eventually(f"{root}/resourcequotas/q", lambda obj: obj["status"]["used"]["pods"] == "0")
    (await api.post(f"{root}/pods", requesting("o", cpu="100m"))).ok()


@pytest.fixture(scope="module")
def impatient_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that gives a silent node up soon; a real one does it in its own time."""
    given = os.environ.get(REAL_CLUSTER)
    if given:
        yield Cluster.read(Path(given), real=True)
        return
    directory = tmp_path_factory.mktemp("impatient")
    with running_embedded_cluster(directory, "--nodes", "0", "--node-monitor-grace", "5") as cluster:
        yield cluster


@pytest_asyncio.fixture
async def impatient(impatient_cluster: Cluster) -> AsyncIterator[KubeClient]:
    async with connect(impatient_cluster) as client:
        yield client


@pytest_asyncio.fixture
async def short_namespace(impatient: KubeClient) -> AsyncIterator[str]:
    name = f"test-{secrets.token_hex(5)}"
    (await impatient.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    await impatient.eventually(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    yield name
    await impatient.delete(f"/api/v1/namespaces/{name}")


async def run_pod(api: KubeClient, pods: str, node: str) -> None:
    """A pod that the cluster believes to be running there, and that bears an unreachable node for two seconds."""
    body = selecting(node)
    key = "node.kubernetes.io/unreachable"
    body["spec"]["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}]
    (await api.post(pods, body)).ok()
    await api.eventually(f"{pods}/p", lambda obj: obj["spec"].get("nodeName") == node)
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    (await api.patch(f"{pods}/p/status", {"status": running})).ok()


async def test_a_silent_node_loses_its_pods(impatient: KubeClient, short_namespace: str) -> None:
    api, pods = impatient, f"/api/v1/namespaces/{short_namespace}/pods"
    # Where no node at all is heard of, nothing is evicted.
    async with declared_node(api), silent_node(api) as node:
        await run_pod(api, pods, node)
        lost = await api.eventually(f"/api/v1/nodes/{node}", lambda obj: len(unreachable(obj)) == 2, within=120)
        ready = next(entry for entry in lost["status"]["conditions"] if entry["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert ready["message"] == "Kubelet stopped posting node status."
        left = await api.eventually(f"{pods}/p", lambda obj: "deletionTimestamp" in obj["metadata"])
        conditions = {entry["type"]: entry for entry in left["status"]["conditions"]}
        assert conditions["Ready"]["status"] == "False"
        assert conditions["DisruptionTarget"]["reason"] == "DeletionByTaintManager"
        assert left["status"]["phase"] == "Running"
        # Nobody confirms the deletion: the pod stays, terminating, until it is forced.
        assert (await api.get(f"{pods}/p")).status == 200
        (await api.delete(f"{pods}/p", gracePeriodSeconds="0")).ok()
        assert (await api.get(f"{pods}/p")).status == 404


async def test_a_node_that_speaks_again_is_trusted_again(impatient: KubeClient, short_namespace: str) -> None:
    del short_namespace
    api = impatient
    async with silent_node(api) as node:
        path = f"/api/v1/nodes/{node}"
        await api.eventually(path, lambda obj: bool(unreachable(obj)), within=120)
        status = {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}
        await renew(api, node)
        (await api.patch(f"{path}/status", {"status": status}, STRATEGIC)).ok()
        await api.eventually(path, lambda obj: not unreachable(obj))


def unreachable(node: dict[str, Any]) -> list[str]:
    taints = node["spec"].get("taints") or []
    return [taint["effect"] for taint in taints if taint["key"] == "node.kubernetes.io/unreachable"]
