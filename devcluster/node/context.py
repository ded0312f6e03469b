"""The values that all parts of a pod share: the services of its node, and its directory, address and volumes."""

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
SHARED_SECONDS = 1.0  # pods that start within this time share the ConfigMaps and Secrets that one of them fetched


@dataclass(slots=True, kw_only=True)
class NodeRuntime:
    """The parts of a node that its pods use."""

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
    """Returns the address of a pod by its uid, the same one until the pod releases it."""
    release: Callable[[str], None]
    reject: Callable[[Mapping[str, Any]], tuple[str, str] | None]
    """Returns reason and message if a new pod does not fit on the node."""
    hosts: "Callable[[PodContext], str]"
    """Returns the current content of the hosts file of a pod."""


@dataclass(slots=True, kw_only=True)
class PodContext:
    """The values that the volumes, containers and probes of one pod share."""

    node: NodeRuntime
    pod: Mapping[str, Any]
    """The last observed object, replaced when the watch delivers a newer one."""
    ip: str
    changed: Callable[[], None]
    """Tells the status writer that the status has changed."""
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
        """Return the maximum age, in seconds, of fetched objects at the start: they must not be older than the pod."""
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
