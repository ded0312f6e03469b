"""Pods that keep away from each other, and nodes that are chosen by labels given later."""

from typing import Any

import pytest

from tests.conformance.manifests import pod
from tests.conformance.test_scheduling import declared_node, scheduled, unschedulable
from tests.support.clusters.kube import STRATEGIC, KubeClient

pytestmark = pytest.mark.conformance

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "lonely"}}}
        ]
    }
}


def lonely(name: str, node: str, app: str = "lonely", **spec: Any) -> dict[str, Any]:
    body = pod(name, nodeSelector={"only": node}, **spec)
    body["metadata"]["labels"] = {"app": app}
    return body


async def test_pods_that_keep_apart_share_no_host(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with declared_node(api) as node:
        named = {"metadata": {"labels": {"kubernetes.io/hostname": node}}}
        (await api.patch(f"/api/v1/nodes/{node}", named)).ok()
        (await api.post(pods, lonely("first", node, affinity=APART))).ok()
        await api.eventually(f"{pods}/first", lambda obj: obj["spec"].get("nodeName") == node)
        for name, app, affinity, words in (
            ("second", "lonely", APART, "1 node(s) didn't match pod anti-affinity rules"),
            ("other", "social", APART, "1 node(s) didn't match pod anti-affinity rules"),
            ("plain", "lonely", {}, "1 node(s) didn't satisfy existing pods anti-affinity rules"),
        ):
            message = await unschedulable(api, namespace, lonely(name, node, app, affinity=affinity))
            assert words in message
            assert "1 No preemption victims found for incoming pod" in message
        (await api.post(pods, lonely("social", node, "social"))).ok()
        await api.eventually(f"{pods}/social", lambda obj: obj["spec"].get("nodeName") == node)
        (await api.delete(f"{pods}/first", gracePeriodSeconds="0")).ok()
        (await api.delete(f"{pods}/plain", gracePeriodSeconds="0")).ok()
        for name in ("second", "other"):
            (await api.delete(f"{pods}/{name}", gracePeriodSeconds="0")).ok()
        (await api.post(pods, lonely("third", node, affinity=APART))).ok()
        await api.eventually(f"{pods}/third", lambda obj: obj["spec"].get("nodeName") == node)


async def test_labels_of_nodes_are_patched_selected_and_taken_off(api: KubeClient, namespace: str) -> None:
    key = f"example.com/{namespace}"
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["w-0"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with declared_node(api) as node:
        message = await unschedulable(api, namespace, lonely("p", node, affinity=affinity))
        assert "node(s) didn't match Pod's node affinity/selector" in message
        for media in ("application/merge-patch+json", STRATEGIC):
            (await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {key: "w-1"}}}, media)).ok()
        listed = (await api.get("/api/v1/nodes", labelSelector=f"{key}=w-1")).ok()["items"]
        assert [found["metadata"]["name"] for found in listed] == [node]
        assert scheduled((await api.get(f"{pods}/p")).ok()).get("status") != "True"
        (await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {key: "w-0"}}})).ok()
        await api.eventually(f"{pods}/p", lambda obj: obj["spec"].get("nodeName") == node)
        (await api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {key: None}}})).ok()
        assert (await api.get("/api/v1/nodes", labelSelector=key)).ok()["items"] == []
        assert (await api.get(f"{pods}/p")).ok()["spec"]["nodeName"] == node
