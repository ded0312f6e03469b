"""The settings of a node. All durations are in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings of one node; docs/embedded-cluster.md describes their effects."""

    data_dir: Path
    images_file: Path | None = None
    """The file that maps image patterns to commands. Without it, or while it does not exist: the built-in entries."""
    cpu: str = "8"
    memory: str = "16Gi"
    ephemeral_storage: str = "100Gi"
    pods: int = 110
    extended_resources: Mapping[str, str] = field(default_factory=dict)
    """Resources that the node declares without having them, such as {"nvidia.com/gpu": "8"}."""
    labels: Mapping[str, str] = field(default_factory=dict)
    schedulable: bool = True
    """False registers a cordoned node, which runs only pods that name it or tolerate that."""
    lease_interval: float = 10.0
    """The renewal period of the Lease: a quarter of its duration, as for a kubelet."""
    status_interval: float = 10.0
    """The period of the heartbeat in the Ready condition."""
    configmap_refresh: float = 60.0
    """The period in which volumes of ConfigMaps and Secrets are refreshed; a kubelet needs up to a minute."""
    backoff_base: float = 10.0
    """The wait before the second restart, doubled for each further one. The first restart is immediate."""
    backoff_max: float = 300.0
    mount_retry: float = 2.0
    """The wait until missing volumes and configuration are requested again."""
    namespaces: bool | None = None
    """Whether to use mount namespaces. None: if the system allows them. True: refuse to start without them."""
    routed_addresses: bool = False
    """Whether to use addresses in 198.18.0.0/15 if a route can be added. A real API server refuses loopback ones."""
    host_root: Path | None = None
    """The root directory of hostPath volumes and JuiceFS caches. None: the root of this machine."""
    juicefs: Path | None = None
    """The command that mounts JuiceFS volumes. None: the one that docs/embedded-cluster.md describes."""
    log_limit_bytes: int = 64 * 1024 * 1024
    """The maximum size of the log of a container. Further output is dropped."""

    def host_path(self, path: str) -> Path:
        """Return the path on this machine of a path on the node."""
        return Path(path) if self.host_root is None else self.host_root / path.lstrip("/")
