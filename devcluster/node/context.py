"""What the parts of one pod share: its node's means, its directory, its address, its volumes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster.node.containers.images import Image
from devcluster.node.environment import Sources
from devcluster.node.kube.client import KubeClient
from devcluster.node.kube.configuration import CONFIG_MAPS, SECRETS, ObjectCache, Objects, as_text
from devcluster.node.kube.events import EventRecorder
from devcluster.node.settings import NodeSettings
from devcluster.node.storage.csi import CsiMounts

HOST_IP = "127.0.0.1"
SHARED_SECONDS = 1.0  # for so long, pods that start together may share what was fetched for one of them


@dataclass(slots=True, kw_only=True)
class NodeRuntime:
    """What a node offers to all its pods."""

    name: str
    client: KubeClient
    settings: NodeSettings
    objects: ObjectCache
    events: EventRecorder
    csi: CsiMounts
    images: Callable[[], tuple[Image, ...]]
    namespaces: bool
    allocatable: Mapping[str, str]
    address: Callable[[str], str]
    """The address of a pod uid, stable while the pod is here."""
    release: Callable[[str], None]
    reject: Callable[[Mapping[str, Any]], tuple[str, str] | None]
    """Why a new pod does not fit here any more, if so."""
    hosts: "Callable[[PodContext], str]"
    """What a pod's hosts file says at this moment."""


@dataclass(slots=True, kw_only=True)
class PodContext:
    node: NodeRuntime
    pod: Mapping[str, Any]
    """As last seen; replaced when the watch brings a newer one."""
    ip: str
    changed: Callable[[], None]
    """Tells the status writer that something moved."""
    volumes: dict[str, Path] = field(default_factory=dict)
    seen_at: float = field(default_factory=time.monotonic)

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def folder(self) -> Path:
        return self.node.settings.data_dir / "pods" / self.uid

    @property
    def hosts_file(self) -> Path:
        return self.folder / "hosts"

    def freshness(self) -> float:
        """How old, in seconds, may be what a pod starts with: nothing from before the pod was there."""
        return min(SHARED_SECONDS, time.monotonic() - self.seen_at)

    def log_file(self, container: str, restart: int) -> Path:
        return self.node.settings.data_dir / "logs" / self.uid / container / f"{restart}.log"

    def volume(self, name: str) -> Mapping[str, Any]:
        return next(v for v in self.pod["spec"].get("volumes") or [] if v["name"] == name)

    def sources(self, objects: Objects) -> Sources:
        return Sources(
            pod=self.pod,
            pod_ip=self.ip,
            host_ip=HOST_IP,
            node_allocatable=self.node.allocatable,
            config_map=lambda name: as_text(objects, (CONFIG_MAPS, name)),
            secret=lambda name: as_text(objects, (SECRETS, name)),
        )

    def event(self, reason: str, message: str, *, container: str | None = None, warning: bool = False) -> None:
        self.node.events.record(self.pod, reason, message, container=container, warning=warning)
