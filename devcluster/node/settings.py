"""What the owner of a node decides about it. All durations are seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    data_dir: Path
    images_file: Path | None = None
    """Image patterns and what they run (docs/embedded-cluster.md); None: the built-in table."""
    cpu: str = "8"
    memory: str = "16Gi"
    ephemeral_storage: str = "100Gi"
    pods: int = 110
    extended_resources: Mapping[str, str] = field(default_factory=dict)
    """For instance {"nvidia.com/gpu": "8"}: declared to the scheduler, nothing stands behind it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    schedulable: bool = True
    """False registers the node cordoned: it runs only pods that name it."""
    lease_interval: float = 10.0
    """A quarter of the lease's duration, as the kubelet has it."""
    status_interval: float = 10.0
    """How often the node's Ready heartbeat is written."""
    configmap_refresh: float = 60.0
    """A kubelet sees a changed ConfigMap or Secret up to its sync period later."""
    backoff_base: float = 10.0
    """The second restart waits this long, each further one twice as long; the first is immediate."""
    backoff_max: float = 300.0
    mount_retry: float = 2.0
    """Volumes and configuration that are missing are looked for again after this long."""
    namespaces: bool | None = None
    """Mount namespaces: None tries, False never uses them, True refuses to start without."""
    routed_addresses: bool = False
    """Pod addresses in 198.18.0.0/15 where this process may add a route: a real API server refuses loopback ones."""
    host_root: Path | None = None
    """What stands for `/` in hostPath volumes and JuiceFS' cache directories; None: this machine's own."""
    juicefs: Path | None = None
    """The command that mounts JuiceFS volumes; None: looked for (docs/embedded-cluster.md)."""
    log_limit_bytes: int = 64 * 1024 * 1024
    """A container's log stops growing here."""

    def host_path(self, path: str) -> Path:
        """Where a path of the node's machine is."""
        return Path(path) if self.host_root is None else self.host_root / path.lstrip("/")
