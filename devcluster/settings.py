"""What the embedded cluster may be told at its start."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How fast the control plane reacts, in seconds; the defaults suit a laptop, where a real one waits longer."""

    node_monitor_period: float = 1.0
    node_monitor_grace: float = 40.0
    eviction_toleration: int = 300
    orphan_pod_grace: float = 40.0
    bookmark: float = 5.0
    event_ttl: float = 3600.0
    shutdown: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class DevClusterSettings:
    """`data_dir` None keeps everything in memory; `port` 0 takes a free one; `token` empty draws one."""

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
