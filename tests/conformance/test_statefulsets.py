"""StatefulSets on nodes that nobody plays: the test says when a pod is ready, and when it has ended."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.test_scheduling import declared_node
from tests.support.clusters.kube import KubeClient

pytestmark = pytest.mark.conformance


class Sets:
    """One set named `w` in a namespace, and its pods on a declared node."""

    def __init__(self, api: KubeClient, namespace: str, node: str) -> None:
        self.api = api
        self.node = node
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        self.path = f"{self.sets}/w"

    def manifest(self, replicas: int = 2, **spec: Any) -> dict[str, Any]:
        container = {"name": "main", "image": "registry.example/none:1"}
        pod = {"terminationGracePeriodSeconds": 0, "nodeSelector": {"only": self.node}, "containers": [container]}
        template = {"metadata": {"labels": {"app": "w"}}, "spec": pod}
        found = {"replicas": replicas, "serviceName": "svc", "selector": {"matchLabels": {"app": "w"}}, **spec}
        return {"metadata": {"name": "w"}, "spec": found | {"template": template}}

    async def create(self, replicas: int = 2, **spec: Any) -> dict[str, Any]:
        created: dict[str, Any] = (await self.api.post(self.sets, self.manifest(replicas, **spec))).ok()
        return created

    async def bound(self, name: str, *, other_than: str = "") -> dict[str, Any]:
        """The pod of that name once it has a node, its uid other than a former one's."""

        def wanted(pod: dict[str, Any]) -> bool:
            return bool(pod["spec"].get("nodeName")) and pod["metadata"]["uid"] != other_than

        found: dict[str, Any] = await self.api.eventually(f"{self.pods}/{name}", wanted)
        return found

    async def ready(self, name: str, *, other_than: str = "") -> dict[str, Any]:
        pod = await self.bound(name, other_than=other_than)
        await self.report(name, phase="Running", conditions=[{"type": "Ready", "status": "True"}])
        return pod

    async def report(self, name: str, **status: Any) -> None:
        (await self.api.patch(f"{self.pods}/{name}/status", {"status": status})).ok()

    async def counted(self, **wanted: Any) -> dict[str, Any]:
        """The set once its status says so; what is wanted as None is absent."""
        found: dict[str, Any] = await self.api.eventually(
            self.path, lambda body: all(body["status"].get(key) == value for key, value in wanted.items())
        )
        return found

    async def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in (await self.api.get(self.pods)).ok()["items"]]

    async def resize(self, replicas: int) -> None:
        (await self.api.patch(self.path, {"spec": {"replicas": replicas}})).ok()


@pytest_asyncio.fixture
async def sets(api: KubeClient, namespace: str) -> AsyncIterator[Sets]:
    async with declared_node(api) as node:
        yield Sets(api, namespace, node)


async def test_defaults_of_a_set_and_of_its_pods(sets: Sets, minor: int) -> None:
    created = await sets.create()
    assert created["metadata"]["generation"] == 1
    assert created["status"] == {"replicas": 0, "availableReplicas": 0}
    spec = created["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    rolling_update = {"partition": 0} | ({"maxUnavailable": 1} if minor >= 37 else {})
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling_update}
    assert spec["revisionHistoryLimit"] == 10
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    template = spec["template"]["spec"]
    assert (template["restartPolicy"], template["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert "serviceAccountName" not in template
    pod = await sets.bound("w-0")
    revision = pod["metadata"]["labels"].pop("controller-revision-hash")
    assert re.fullmatch(r"w-[a-z0-9]{1,10}", revision)
    assert pod["metadata"]["labels"] == {
        "app": "w",
        "apps.kubernetes.io/pod-index": "0",
        "statefulset.kubernetes.io/pod-name": "w-0",
    }
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "w",
            "uid": created["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert (pod["metadata"]["generateName"], pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("w-", "w-0", "svc")
    status = (await sets.counted(replicas=1))["status"]
    assert status == {
        "observedGeneration": 1,
        "replicas": 1,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "availableReplicas": 0,
    }


async def test_pods_come_and_go_one_after_the_other(sets: Sets) -> None:
    await sets.create(3)
    await sets.bound("w-0")
    assert await sets.names() == ["w-0"]
    await sets.ready("w-0")
    await sets.ready("w-1")
    await sets.counted(replicas=3, readyReplicas=2, availableReplicas=2)
    await sets.ready("w-2")
    await sets.counted(replicas=3, readyReplicas=3, availableReplicas=3, currentReplicas=3, updatedReplicas=3)
    await sets.resize(1)
    gone = await sets.counted(replicas=1, readyReplicas=1, observedGeneration=2)
    assert gone["metadata"]["generation"] == 2
    assert await sets.names() == ["w-0"]

    def every_step_is_reported(found: dict[str, Any]) -> bool:
        said = {event["message"] for event in found["items"] if event["involvedObject"]["kind"] == "StatefulSet"}
        return said == {f"Create Pod w-{i} in StatefulSet w successful" for i in range(3)} | {
            f"Delete Pod w-{i} in StatefulSet w successful" for i in (1, 2)
        }

    await sets.api.eventually(sets.pods.removesuffix("pods") + "events", every_step_is_reported)


async def test_parallel_sets_do_not_wait(sets: Sets) -> None:
    await sets.create(3, podManagementPolicy="Parallel")
    for number in range(3):
        await sets.bound(f"w-{number}")
    await sets.counted(replicas=3, readyReplicas=None, availableReplicas=0)
    await sets.resize(0)
    await sets.counted(replicas=0, currentReplicas=None, observedGeneration=2)


@pytest.mark.parametrize("how", ["deleted", "failed", "succeeded"])
async def test_a_pod_that_is_gone_or_ended_is_made_again_under_its_name(sets: Sets, how: str) -> None:
    await sets.create(2)
    first = await sets.ready("w-0")
    await sets.ready("w-1")
    await sets.counted(readyReplicas=2)
    if how == "deleted":
        (await sets.api.delete(f"{sets.pods}/w-0")).ok()
    else:
        await sets.report("w-0", phase=how.title())
    again = await sets.ready("w-0", other_than=first["metadata"]["uid"])
    for label in ("controller-revision-hash", "apps.kubernetes.io/pod-index"):
        assert again["metadata"]["labels"][label] == first["metadata"]["labels"][label]
    await sets.counted(replicas=2, readyReplicas=2)


async def test_the_scale_subresource(sets: Sets) -> None:
    await sets.create(1)
    await sets.ready("w-0")
    await sets.counted(readyReplicas=1)
    scale = (await sets.api.get(f"{sets.path}/scale")).ok()
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 1, "selector": "app=w"})
    (await sets.api.put(f"{sets.path}/scale", scale | {"spec": {"replicas": 2}})).ok()
    await sets.bound("w-1")
    (await sets.api.put(f"{sets.path}/scale", scale | {"spec": {"replicas": 3}})).refused(409, "Conflict")
    smaller = (await sets.api.patch(f"{sets.path}/scale", {"spec": {"replicas": 0}})).ok()
    assert smaller["spec"] == {}
    await sets.counted(replicas=0)


async def test_a_new_template_replaces_pods_from_the_last_to_the_first(sets: Sets) -> None:
    await sets.create(2)
    old = [await sets.ready("w-0"), await sets.ready("w-1")]
    await sets.counted(readyReplicas=2)
    annotation = {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}
    (await sets.api.patch(sets.path, annotation)).ok()
    new = await sets.bound("w-1", other_than=old[1]["metadata"]["uid"])
    assert new["metadata"]["annotations"] == {"x": "y"}
    assert (await sets.bound("w-0"))["metadata"]["uid"] == old[0]["metadata"]["uid"]
    halfway = (await sets.counted(replicas=2, currentReplicas=1, updatedReplicas=1))["status"]
    assert halfway["currentRevision"] != halfway["updateRevision"]
    await sets.ready("w-1")
    await sets.ready("w-0", other_than=old[0]["metadata"]["uid"])
    done = (await sets.counted(readyReplicas=2, currentReplicas=2, updatedReplicas=2))["status"]
    assert done["currentRevision"] == done["updateRevision"] == halfway["updateRevision"]


async def test_pods_go_with_their_set(sets: Sets) -> None:
    await sets.create(1)
    await sets.bound("w-0")
    answer = (await sets.api.delete(sets.path)).ok()
    assert (answer["kind"], answer["details"]["kind"], answer["details"]["group"]) == ("Status", "statefulsets", "apps")
    await sets.api.gone(f"{sets.pods}/w-0")


async def test_pods_stay_behind_when_they_are_orphaned(sets: Sets) -> None:
    await sets.create(1)
    await sets.bound("w-0")
    (await sets.api.delete(sets.path, propagationPolicy="Orphan")).ok()
    await sets.api.gone(sets.path)
    await sets.api.eventually(f"{sets.pods}/w-0", lambda pod: not pod["metadata"].get("ownerReferences"))


async def test_a_refused_pod_is_told_and_tried_again(sets: Sets) -> None:
    root = sets.pods.removesuffix("/pods")
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    (await sets.api.post(f"{root}/resourcequotas", quota)).ok()
    await sets.api.eventually(f"{root}/resourcequotas/q", lambda obj: obj["status"].get("hard"))
    await sets.create(1)
    words = 'create Pod w-0 in StatefulSet w failed error: pods "w-0" is forbidden: exceeded quota: q'

    def refusal_is_reported(found: dict[str, Any]) -> bool:
        return any(words in event["message"].replace("Create Pod", "create Pod") for event in found["items"])

    await sets.api.eventually(f"{root}/events", refusal_is_reported)
    (await sets.api.delete(f"{root}/resourcequotas/q")).ok()
    await sets.bound("w-0")


INVALID: list[tuple[dict[str, Any], list[str]]] = [
    (
        {},
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            "spec.template.spec.containers: Required value",
        ],
    ),
    (
        {
            "selector": {"matchLabels": {"a": "b"}},
            "replicas": -1,
            "podManagementPolicy": "X",
            "template": {
                "metadata": {"labels": {"a": "c"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "m"}]},
            },
        },
        [
            "spec.podManagementPolicy: Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`',
            "spec.template.spec.containers[0].image: Required value",
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), INVALID)
async def test_wrong_sets_are_refused(
    api: KubeClient, namespace: str, spec: dict[str, Any], expected: list[str]
) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    refused = await api.post(path, {"metadata": {"name": "w"}, "spec": spec})
    assert refused.refused(422, "Invalid") == f'StatefulSet.apps "w" is invalid: [{", ".join(expected)}]'


async def test_what_a_set_is_may_not_change(sets: Sets, minor: int) -> None:
    await sets.create(0)
    refused = await sets.api.patch(sets.path, {"spec": {"serviceName": "other"}})
    expected = (
        'spec.serviceName: Invalid value: "other": field is immutable'
        if minor >= 37
        else "spec: Forbidden: updates to statefulset spec for fields other than 'replicas'"
    )
    assert expected in refused.refused(422, "Invalid")
