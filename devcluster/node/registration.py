"""Builds the Node object and its Lease, by which a control plane knows this node. Pure."""

import platform
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from devcluster import clock
from devcluster.node.context import HOST_IP
from devcluster.node.settings import NodeSettings

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
VERSION = "v1.36.0-jobgate"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PRESSURES = {"MemoryPressure": "Memory", "DiskPressure": "Disk", "PIDPressure": "PID"}


def capacity(settings: NodeSettings) -> dict[str, str]:
    declared = {"cpu": settings.cpu, "memory": settings.memory, "ephemeral-storage": settings.ephemeral_storage}
    return {**declared, "pods": str(settings.pods), **settings.extended_resources}


def node_object(name: str, settings: NodeSettings) -> dict[str, Any]:
    system, machine = platform.system().lower(), platform.machine()
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        "kubernetes.io/arch": ARCHITECTURES.get(machine, machine),
        **settings.labels,
    }
    spec = {} if settings.schedulable else {"unschedulable": True}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


def node_status(name: str, settings: NodeSettings, port: int, since: datetime, now: datetime) -> dict[str, Any]:
    resources = capacity(settings)
    machine = platform.machine()
    return {
        "capacity": resources,
        "allocatable": resources,
        "conditions": _conditions(since, now),
        # No Hostname: an API server would prefer it for logs, and no DNS resolves it.
        "addresses": [{"type": "InternalIP", "address": HOST_IP}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "machineID": name,
            "systemUUID": name,
            "bootID": clock.micro_timestamp(since),
            "kernelVersion": platform.release(),
            "osImage": platform.platform(terse=True),
            "containerRuntimeVersion": "jobgate-dev://1",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": platform.system().lower(),
            "architecture": ARCHITECTURES.get(machine, machine),
        },
    }


def _conditions(since: datetime, now: datetime) -> list[dict[str, str]]:
    times = {"lastHeartbeatTime": clock.timestamp(now), "lastTransitionTime": clock.timestamp(since)}
    calm = [
        {
            "type": kind,
            "status": "False",
            "reason": f"KubeletHasSufficient{what}" if what != "Disk" else "KubeletHasNoDiskPressure",
            "message": f"the embedded node does not measure {kind}",
            **times,
        }
        for kind, what in PRESSURES.items()
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the node agent is running"}
    return [*calm, ready | times]


def lease_object(name: str, node: Mapping[str, Any], interval: float, now: datetime) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    spec = {
        "holderIdentity": name,
        # As for a kubelet, four times the period of renewals.
        "leaseDurationSeconds": max(1, round(interval * 4)),
        "renewTime": clock.micro_timestamp(now),
    }
    metadata = {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
