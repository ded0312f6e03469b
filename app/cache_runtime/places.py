"""Where a server works and how long it waits: what its command line says."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WarmupTimes:
    """Seconds. The first three are upstream's."""

    workers: float = 120.0  # the coordinator, for the others to come
    lists: float = 600.0  # the others, for their share
    directory: float = 120.0  # the others, for the coordinator to begin
    poll: float = 0.5
    beat: float = 2.0
    silence: float = 30.0  # without a beat: dead


@dataclass(frozen=True, slots=True)
class Places:
    data_dir: Path | None = None
    cache_dirs: tuple[Path, ...] = ()
    timeout: float = 30.0  # seconds for one look at the cache
    server: int | None = None  # which of the set's servers this is
    scratch: Path | None = None  # for lists of files on their way to a program
    secrets: tuple[Path, ...] = ()  # which no sync may read
    environment: dict[str, str] = field(default_factory=dict)  # of every program that is started
    warmup: WarmupTimes = WarmupTimes()
