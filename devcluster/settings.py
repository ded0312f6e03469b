"""The settings of the embedded cluster."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """The periods of the control plane, in seconds. The defaults are those of Kubernetes, or shorter for laptops."""

    node_monitor_period: float = 1.0
    node_monitor_grace: float = 40.0
    eviction_toleration: int = 300
    orphan_pod_grace: float = 40.0
    bookmark: float = 5.0
    event_ttl: float = 3600.0
    shutdown: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class DevClusterSettings:
    """The settings of one cluster.

    Without `data_dir`, the state is in memory. Port 0 selects a free port, and an empty token generates one. Without
    `images`, the images file is `images.yaml` in the data directory, if it exists.
    """

    data_dir: Path | None = None
    kubeconfig: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    nodes: int = 1
    node_cpu: str = "8"
    node_memory: str = "16Gi"
    node_resources: tuple[tuple[str, str], ...] = ()
    images: Path | None = None
    watch_window: int = 10_000
    pod_groups: bool = False
    scheduler_names: frozenset[str] = frozenset({"default-scheduler"})
    timings: Timings = field(default_factory=Timings)
