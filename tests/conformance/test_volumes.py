"""Persistent volumes and claims: what they are given, how they find each other, and what keeps them."""

from typing import Any

import pytest

from tests.conformance.manifests import bound_pod, pod
from tests.conformance.test_scheduling import declared_node, scheduled
from tests.conformance.volumes import VOLUMES, claim, in_phase, remove, stored_volume, volume
from tests.support.clusters.kube import KubeClient

pytestmark = pytest.mark.conformance

MOUNT = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


def claims(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"


async def test_a_new_volume_is_protected_and_soon_available(api: KubeClient) -> None:
    body = volume()
    path = f"{VOLUMES}/{body['metadata']['name']}"
    created = (await api.post(VOLUMES, body)).ok()
    try:
        assert created["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        assert "generation" not in created["metadata"]
        assert created["status"]["phase"] == "Pending"
        assert created["spec"] == body["spec"] | {
            "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem",
        }
        await api.eventually(path, in_phase("Available"))
        gone = await api.delete(path)
        assert gone.ok()["kind"] == "PersistentVolume"
        await api.gone(path)
    finally:
        await remove(api, path)


INVALID_VOLUMES: list[tuple[dict[str, Any], str]] = [
    (
        {},
        (
            "[spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: Unsupported value: null: "
            'supported values: "storage", spec: Required value: must specify a volume type]'
        ),
    ),
    (
        {
            "capacity": {"storage": "1Gi", "cpu": "1"},
            "accessModes": ["Foo"],
            "persistentVolumeReclaimPolicy": "X",
            "volumeMode": "Z",
            "hostPath": {"path": "../x"},
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
        (
            '[spec.accessModes: Unsupported value: "Foo": supported values: "ReadOnlyMany", "ReadWriteMany", '
            '"ReadWriteOnce", "ReadWriteOncePod", spec.capacity: Unsupported value: {"cpu":"1","storage":"1Gi"}: '
            'supported values: "storage", spec.persistentVolumeReclaimPolicy: Unsupported value: "X": supported '
            'values: "Delete", "Recycle", "Retain", spec.hostPath.path: Invalid value: "../x": must not contain '
            "'..', spec.csi: "
            'Forbidden: may not specify more than 1 volume type, spec.volumeMode: Unsupported value: "Z": supported '
            'values: "Block", "Filesystem"]'
        ),
    ),
]


@pytest.mark.parametrize(("spec", "expected"), INVALID_VOLUMES)
async def test_wrong_volumes_are_refused(api: KubeClient, spec: dict[str, Any], expected: str) -> None:
    refused = await api.post(VOLUMES, {"metadata": {"name": "wrong"}, "spec": spec})
    assert refused.refused(422, "Invalid") == f'PersistentVolume "wrong" is invalid: {expected}'


INVALID_CLAIMS: list[tuple[dict[str, Any], str]] = [
    (
        {},
        (
            "[spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: "
            "Required value]"
        ),
    ),
    (
        {"accessModes": ["ReadWriteMany", "ReadWriteOncePod"], "resources": {"requests": {"storage": "0"}}},
        (
            "[spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes, "
            'spec.resources[storage]: Invalid value: "0": must be greater than zero]'
        ),
    ),
]


@pytest.mark.parametrize(("spec", "expected"), INVALID_CLAIMS)
async def test_wrong_claims_are_refused(api: KubeClient, namespace: str, spec: dict[str, Any], expected: str) -> None:
    refused = await api.post(claims(namespace), {"metadata": {"name": "c"}, "spec": spec})
    assert refused.refused(422, "Invalid") == f'PersistentVolumeClaim "c" is invalid: {expected}'


async def test_claim_and_volume_find_each_other_and_part(api: KubeClient, namespace: str) -> None:
    path = f"{claims(namespace)}/c"
    async with stored_volume(api) as name:
        selector = {"matchLabels": {"own": name}}
        created = (await api.post(claims(namespace), claim(name, size="1Gi", selector=selector))).ok()
        assert created["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert created["status"] == {"phase": "Pending"}
        bound = await api.eventually(path, in_phase("Bound"))
        assert bound["spec"]["volumeName"] == name
        assert bound["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        # Kubernetes 1.37 adds the condition Unused to a claim without pods, a moment later.
        binding = {key: value for key, value in bound["status"].items() if key != "conditions"}
        assert binding == {"phase": "Bound", "accessModes": ["ReadWriteMany"], "capacity": {"storage": "10Gi"}}
        taken = await api.eventually(f"{VOLUMES}/{name}", in_phase("Bound"))
        assert taken["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        reference = {key: taken["spec"]["claimRef"][key] for key in ("kind", "apiVersion", "namespace", "name", "uid")}
        assert reference == {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace,
            "name": "c",
            "uid": created["metadata"]["uid"],
        }
        (await api.delete(path)).ok()
        await api.gone(path)
        await api.eventually(f"{VOLUMES}/{name}", in_phase("Released"))
        # Nobody else gets what was another's until somebody clears it.
        (await api.post(claims(namespace), claim(name, "other"))).ok()
        (await api.patch(f"{VOLUMES}/{name}", {"spec": {"claimRef": None}})).ok()
        await api.eventually(f"{claims(namespace)}/other", in_phase("Bound"))


async def test_a_binding_freezes_both_sides(api: KubeClient, namespace: str) -> None:
    path = f"{claims(namespace)}/c"
    async with stored_volume(api) as name:
        (await api.post(claims(namespace), claim(name))).ok()
        await api.eventually(path, in_phase("Bound"))
        for patch in ({"storageClassName": "other"}, {"volumeName": "other"}, {"accessModes": ["ReadOnlyMany"]}):
            message = (await api.patch(path, {"spec": patch})).refused(422, "Invalid")
            assert "spec: Forbidden: spec is immutable after creation except resources.requests" in message
        smaller = await api.patch(path, {"spec": {"resources": {"requests": {"storage": "1Gi"}}}})
        assert "field can not be less than status.capacity" in smaller.refused(422, "Invalid")
        (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).ok()
        elsewhere = await api.patch(f"{VOLUMES}/{name}", {"spec": {"csi": {"volumeHandle": "other"}}})
        frozen = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
        assert frozen in elsewhere.refused(422, "Invalid")
        mode = await api.patch(f"{VOLUMES}/{name}", {"spec": {"volumeMode": "Block"}})
        assert "volumeMode: Invalid value" in mode.refused(422, "Invalid")
        (await api.patch(f"{VOLUMES}/{name}", {"metadata": {"labels": {"a": "b"}}})).ok()


UNFIT: list[tuple[str, dict[str, Any]]] = [
    ("larger", {"resources": {"requests": {"storage": "11Gi"}}}),
    ("mode", {"accessModes": ["ReadWriteOnce"]}),
    ("class", {"storageClassName": "another"}),
    ("labels", {"selector": {"matchLabels": {"own": "another"}}}),
    ("block", {"volumeMode": "Block"}),
]


async def test_what_does_not_suit_stays_pending_and_says_so(api: KubeClient, namespace: str) -> None:
    async with stored_volume(api) as name:
        for which, spec in UNFIT:
            (await api.post(claims(namespace), claim(name, which) | {"spec": claim(name)["spec"] | spec})).ok()
        missing = f'storageclass.storage.k8s.io "{name}" not found'

        def problems_are_reported(found: dict[str, Any]) -> bool:
            mine = [event for event in found["items"] if event["reason"] == "ProvisioningFailed"]
            return {event["involvedObject"]["name"] for event in mine} == {which for which, _ in UNFIT} and any(
                event["message"] == missing for event in mine
            )

        await api.eventually(f"/api/v1/namespaces/{namespace}/events", problems_are_reported)
        for which, _ in UNFIT:
            assert (await api.get(f"{claims(namespace)}/{which}")).ok()["status"]["phase"] == "Pending"
        (await api.post(claims(namespace), claim(name))).ok()
        await api.eventually(f"{claims(namespace)}/c", in_phase("Bound"))


async def test_the_smallest_volume_that_will_do_is_taken(api: KubeClient, namespace: str) -> None:
    async with stored_volume(api) as large:
        sizes = {"capacity": {"storage": "5Gi"}, "storageClassName": large}
        async with (
            stored_volume(api, **sizes) as middle,
            stored_volume(api, **sizes | {"capacity": {"storage": "1Gi"}}),
        ):
            (await api.post(claims(namespace), claim(large, size="2Gi"))).ok()
            bound = await api.eventually(f"{claims(namespace)}/c", in_phase("Bound"))
            assert bound["spec"]["volumeName"] == middle


async def test_either_side_may_name_the_other(api: KubeClient, namespace: str) -> None:
    kept = {"namespace": namespace, "name": "reserved"}
    async with stored_volume(api, claimRef=kept) as reserved, stored_volume(api) as named:
        (await api.post(claims(namespace), claim(reserved, "thief"))).ok()
        (await api.post(claims(namespace), claim(reserved, "reserved"))).ok()
        bound = await api.eventually(f"{claims(namespace)}/reserved", in_phase("Bound"))
        assert bound["spec"]["volumeName"] == reserved
        assert (await api.get(f"{claims(namespace)}/thief")).ok()["status"]["phase"] == "Pending"
        (await api.post(claims(namespace), claim(named, "named", volumeName=named))).ok()
        bound = await api.eventually(f"{claims(namespace)}/named", in_phase("Bound"))
        assert bound["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}


async def test_a_claim_whose_volume_is_gone_is_lost(api: KubeClient, namespace: str) -> None:
    async with stored_volume(api) as name:
        (await api.post(claims(namespace), claim(name))).ok()
        await api.eventually(f"{claims(namespace)}/c", in_phase("Bound"))
    await api.eventually(f"{claims(namespace)}/c", in_phase("Lost"))


async def test_what_is_used_outlives_its_deletion(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    path = f"{claims(namespace)}/c"
    async with stored_volume(api) as name:
        (await api.post(claims(namespace), claim(name))).ok()
        await api.eventually(path, in_phase("Bound"))
        (await api.post(pods, bound_pod(volumes=MOUNT))).ok()
        (await api.delete(f"{VOLUMES}/{name}")).ok()
        (await api.delete(path)).ok()
        await api.eventually(f"{VOLUMES}/{name}", lambda found: "deletionTimestamp" in found["metadata"])
        left = await api.eventually(path, lambda found: "deletionTimestamp" in found["metadata"])
        assert left["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        (await api.delete(f"{pods}/p", gracePeriodSeconds="0")).ok()
        await api.gone(path)
        await api.gone(f"{VOLUMES}/{name}")


async def test_pods_wait_for_their_claims(api: KubeClient, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with declared_node(api) as node, stored_volume(api) as name:
        (await api.post(pods, pod(volumes=MOUNT, nodeSelector={"only": node}))).ok()

        def refused(words: str) -> Any:
            return lambda found: words in scheduled(found).get("message", "")

        found = await api.eventually(f"{pods}/p", refused('persistentvolumeclaim "c" not found. not found'))
        assert scheduled(found)["reason"] == "Unschedulable"
        (await api.post(claims(namespace), claim("another-class"))).ok()
        await api.eventually(f"{pods}/p", refused("pod has unbound immediate PersistentVolumeClaims. not found"))
        (await api.delete(f"{claims(namespace)}/c")).ok()
        await api.gone(f"{claims(namespace)}/c")
        (await api.post(claims(namespace), claim(name))).ok()
        await api.eventually(f"{pods}/p", lambda found: found["spec"].get("nodeName") == node)
