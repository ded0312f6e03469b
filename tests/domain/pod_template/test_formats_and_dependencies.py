"""Formats of texts, and fields that need or exclude one another, compared with a Kubernetes 1.36 API server."""

from typing import Any

import pytest

from tests.domain.pod_template.test_pod_template import (
    C0,
    VOLUME,
    container,
    env,
    errors_of,
    limits,
    mounts,
    pod,
    volume,
)

ITEM = "/spec/volumes/0/downwardAPI/items/0"
CLAIM = "/spec/volumes/0/ephemeral/volumeClaimTemplate"


def claim(**spec: Any) -> dict[str, Any]:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return volume(ephemeral={"volumeClaimTemplate": {"spec": size | spec}})


def item(**fields: Any) -> dict[str, Any]:
    return volume(downwardAPI={"items": [{"path": "a"} | fields]})


def rules(**fields: Any) -> dict[str, Any]:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
    return pod(container(restartPolicy="Never", restartPolicyRules=[rule | fields]))


ACCEPTED = [
    # The zero value of Go is valid for these, although they are required in the published definitions.
    pod(container(lifecycle={"preStop": {"sleep": {}}, "postStart": {"httpGet": {"port": 1, "httpHeaders": [
        {"name": "A"}]}}})),
    pod(securityContext={"sysctls": [{"name": "a.b"}]}), volume(iscsi={"targetPortal": "p", "iqn": "eui." + "a" * 16}),
    limits({"kubernetes.io/a": "1.5"}), limits({}, {"kubernetes.io/a": "1"}), limits({"cpu": " 1 "}),
    pod(container(envFrom=[{"secretRef": {"name": "a-"}}])), pod(dnsConfig={"searches": [".", "a.b.", "a_b"]}),
    pod(container(lifecycle={"preStop": {"sleep": {"seconds": 1}}}), terminationGracePeriodSeconds=-5),
    *(env(valueFrom={"resourceFieldRef": {"resource": "limits.memory", "divisor": divisor}})
      for divisor in ("1024Ki", "1", "1k", "1E", "1Ki", "1Ei")),
    pod(hostnameOverride="a" * 64), pod(schedulingGroup={"podGroupName": "a.b"}), pod(schedulingGroup=None),
    pod(container(resources={"limits": {"cpu": 1}}), resources={"limits": {"cpu": 1}}),
    env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}),
    volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.annotations['A.b/c']"}}]}),
    pod(securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": "a"}}),
    pod(securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": ""}}),
    claim(), pod(overhead={"cpu": "1"}, priority=5, runtimeClassName="a"),  # admission plugins decide about these
]  # fmt: skip


@pytest.mark.parametrize("template", ACCEPTED)
def test_what_kubernetes_accepts_passes(template: dict[str, Any]) -> None:
    assert errors_of(template) == []


REFUSED = [
    (pod(dnsConfig={"searches": ["A"]}), "/spec/dnsConfig/searches/0", "Invalid"),
    (pod(dnsConfig={"searches": [None]}), "/spec/dnsConfig/searches/0", "Required"),
    (item(), f"{ITEM}", "Required"),
    (item(fieldRef={"fieldPath": "status.podIP"}), f"{ITEM}/fieldRef/fieldPath", "NotSupported"),
    (item(fieldRef={"fieldPath": "metadata.labels['a b']"}), f"{ITEM}/fieldRef/fieldPath", "Invalid"),
    (item(resourceFieldRef={"resource": "limits.cpu"}), f"{ITEM}/resourceFieldRef/containerName", "Required"),
    (item(fieldRef={"fieldPath": "metadata.name", "apiVersion": "v2"}), f"{ITEM}/fieldRef/apiVersion", "NotSupported"),
    (env(valueFrom={"resourceFieldRef": {"resource": "limits.gpu"}}),
     f"{C0}/env/0/valueFrom/resourceFieldRef/resource", "Invalid"),
    *((env(valueFrom={"resourceFieldRef": {"resource": resource, "divisor": divisor}}),
       f"{C0}/env/0/valueFrom/resourceFieldRef/divisor", "NotSupported")
      for resource, divisor in (("limits.cpu", "1Ki"), ("limits.memory", "1024"), ("limits.memory", "1e3"))),
    (volume(azureDisk={"diskName": "a", "diskURI": ""}), "/spec/volumes/0/azureDisk/diskURI", "Required"),
    (volume(azureDisk={"diskName": "a", "diskURI": "https://a", "kind": "Managed"}),
     "/spec/volumes/0/azureDisk/diskURI", "NotSupported"),
    (volume(fc={"lun": 0}), "/spec/volumes/0/fc", "Invalid"),
    (volume(fc={"lun": 256, "wwids": ["a"]}), "/spec/volumes/0/fc/lun", "OutOfRange"),
    (volume(fc={"targetWWNs": ["a"]}), "/spec/volumes/0/fc/lun", "Required"),
    (volume(flocker={}), "/spec/volumes/0/flocker", "Invalid"),
    (volume(storageos={}), "/spec/volumes/0/storageos/volumeName", "Required"),
    (volume(csi={"driver": "a b"}), "/spec/volumes/0/csi/driver", "Invalid"),
    (volume(csi={"driver": "a", "nodePublishSecretRef": {}}),
     "/spec/volumes/0/csi/nodePublishSecretRef/name", "Required"),
    (volume(image={}), "/spec/volumes/0/image/reference", "Required"),
    (volume(projected={"sources": [{"secret": {}}]}), "/spec/volumes/0/projected/sources/0/secret/name", "Required"),
    (volume(projected={"sources": [{"configMap": {"name": "a"}, "secret": {"name": "a"}}]}),
     "/spec/volumes/0/projected/sources/0", "Invalid"),
    *((volume(projected={"sources": [{"clusterTrustBundle": {"path": "a"} | chosen}]}),
       "/spec/volumes/0/projected/sources/0/clusterTrustBundle", code)
      for chosen, code in (({}, "Required"), ({"name": "a", "signerName": "a.b/c"}, "Invalid"))),
    (volume(secret={"secretName": "s", "items": [{"key": "a", "path": "..a"}]}),
     "/spec/volumes/0/secret/items/0/path", "Invalid"),
    (volume(iscsi={"targetPortal": "p", "iqn": "a"}), "/spec/volumes/0/iscsi/iqn", "Invalid"),
    (volume(ephemeral={}), "/spec/volumes/0/ephemeral/volumeClaimTemplate", "Required"),
    (claim(accessModes=[]), f"{CLAIM}/spec/accessModes", "Required"),
    (claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]), f"{CLAIM}/spec/accessModes", "Invalid"),
    (claim(resources={}), f"{CLAIM}/spec/resources/requests/storage", "Required"),
    (claim(resources={"requests": {"storage": 0}}), f"{CLAIM}/spec/resources/requests/storage", "OutOfRange"),
    (claim(dataSource={"kind": "A", "name": "a"}), f"{CLAIM}/spec/dataSource/kind", "Invalid"),
    (claim(storageClassName="A"), f"{CLAIM}/spec/storageClassName", "Invalid"),
    (pod(container(ports=[{"containerPort": 80.0}])), f"{C0}/ports/0/containerPort", "Invalid"),
    (pod(container(livenessProbe={"httpGet": {"port": 1, "httpHeaders": [{"name": "a b"}]}})),
     f"{C0}/livenessProbe/httpGet/httpHeaders/0/name", "Invalid"),
    (rules(action="Stop"), f"{C0}/restartPolicyRules/0/action", "NotSupported"),
    (rules(exitCodes=None), f"{C0}/restartPolicyRules/0/exitCodes", "Required"),
    (pod(container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])),
     f"{C0}/resizePolicy/0/restartPolicy", "NotSupported"),
    (pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
     "/spec/securityContext/seccompProfile/localhostProfile", "Required"),
    (pod(securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": ""}}),
     "/spec/securityContext/appArmorProfile/localhostProfile", "Required"),
    (pod(securityContext={"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}}),
     "/spec/securityContext/appArmorProfile/localhostProfile", "Invalid"),
    (pod(container(securityContext={"procMount": "Unmasked"})), f"{C0}/securityContext/procMount", "Invalid"),
    (pod(os={"name": "linux"}, securityContext={"windowsOptions": {"runAsUserName": "a"}}),
     "/spec/securityContext/windowsOptions", "NotSupported"),
    (pod(os={"name": "windows"}, hostIPC=True), "/spec/hostIPC", "NotSupported"),
    (pod(container(securityContext={"runAsUser": 1}), os={"name": "windows"}),
     f"{C0}/securityContext/runAsUser", "NotSupported"),
    (pod(container(securityContext={"windowsOptions": {"hostProcess": True}})), "/spec/hostNetwork", "Required"),
    (mounts({"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}),
     f"{C0}/volumeMounts/0/mountPropagation", "Invalid"),
    (mounts({"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}),
     f"{C0}/volumeMounts/0/recursiveReadOnly", "Invalid"),
    (pod(container(volumeDevices=[{"name": "v", "devicePath": "/a"}]), **VOLUME),
     f"{C0}/volumeDevices/0/name", "Invalid"),
    (pod(resourceClaims=[{"name": "a"}]), "/spec/resourceClaims/0", "Required"),
    *((pod(schedulingGroup=group), "/spec/schedulingGroup/podGroupName", "Required")
      for group in ({}, {"podGroupName": None}, {"podGroupName": ""})),
    (pod(schedulingGroup={"podGroupName": "a/.."}), "/spec/schedulingGroup/podGroupName", "Invalid"),
    (pod(schedulingGroup={"podGroupName": 5}), "/spec/schedulingGroup/podGroupName", "Invalid"),
    (pod(schedulingGates=[{"name": "a"}, {"name": "a"}]), "/spec/schedulingGates/1/name", "Duplicate"),
    (
        pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        "/spec/schedulingGates/0/name",
        "NotSupported",
    ),
    (pod(resources={"claims": []}), "/spec/resources/claims", "NotSupported"),
    (pod(container(resources={"requests": {"cpu": 2}}), resources={"requests": {"cpu": 1}}),
     "/spec/resources/requests/cpu", "OutOfRange"),
    (pod(initContainers=[container(name="i", resources={"limits": {"cpu": 2}, "requests": {"cpu": 1}})],
         resources={"limits": {"cpu": 1}}), "/spec/initContainers/0/resources/limits/cpu", "OutOfRange"),
    (pod(overhead={"cpu": -1}), "/spec/overhead/cpu", "OutOfRange"),
    (limits({"cpu": 1, "hugepages-2Mi": "3Mi"}), f"{C0}/resources/limits/hugepages-2Mi", "Invalid"),
    (pod(hostnameOverride="a.b", hostNetwork=True), "/spec/hostnameOverride", "Invalid"),
    (pod(hostnameOverride="a" * 65), "/spec/hostnameOverride", "Invalid"),
    (pod(activeDeadlineSeconds=2**31), "/spec/activeDeadlineSeconds", "OutOfRange"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "pointer", "code"), REFUSED)
def test_what_kubernetes_refuses(template: dict[str, Any], pointer: str, code: str) -> None:
    (error,) = errors_of(template)
    assert (error.pointer, error.code) == (pointer, code)
    assert error.detail
    assert error.accepted
