"""The configuration of a runtime server, from its command line."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WarmupTimes:
    """The limits and intervals of a warm-up in seconds. The first three have upstream's values."""

    workers: float = 120.0  # how long the coordinator waits for workers to join
    lists: float = 600.0  # how long a worker waits for its list
    directory: float = 120.0  # how long a worker waits for the coordinator to start
    poll: float = 0.5  # between two reads of the directory
    beat: float = 2.0  # between two heartbeats
    silence: float = 30.0  # without a heartbeat a server counts as dead


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """The directories of a server, its index in the set, and the environment of the programs that it starts."""

    data_dir: Path | None = None
    cache_dirs: tuple[Path, ...] = ()
    timeout: float = 30.0  # seconds for each part of a measurement of the cache
    index: int | None = None  # of this server in the set
    scratch: Path | None = None  # for temporary lists of files
    secrets: tuple[Path, ...] = ()  # paths that no sync may read
    environment: dict[str, str] = field(default_factory=dict)  # added to that of every program
    warmup: WarmupTimes = WarmupTimes()
