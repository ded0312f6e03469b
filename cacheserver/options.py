"""The messages between controller and runtime server: posted options, results and the cache status."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.vocabulary import JobType


class SyncRequest(msgspec.Struct, kw_only=True, frozen=True, rename="kebab"):
    """Source, destination and flags of `juicefs sync`, and what the sync may reach.

    A flag that is zero or empty is not passed.
    """

    source: str = ""
    destination: str = ""
    start: str = ""
    end: str = ""
    threads: int = 0
    http_port: int = 0
    update: bool = False
    force_update: bool = False
    perms: bool = False
    dirs: bool = False
    dry: bool = False
    delete_src: bool = False
    delete_dst: bool = False
    exclude: str = ""
    include: str = ""
    manager: str = ""
    worker: str = ""
    bwlimit: int = 0
    no_https: bool = False
    allowed_hosts: tuple[str, ...] = ()
    """What the source may name besides hosts of the internet: `SourceLimits.hosts`."""
    allowed_directories: tuple[str, ...] = ()
    """Where a file:// source may be: `SourceLimits.directories`."""

    @property
    def limits(self) -> SourceLimits:
        return SourceLimits(hosts=self.allowed_hosts, directories=self.allowed_directories)


class WarmupRequest(msgspec.Struct, kw_only=True, frozen=True):
    paths: tuple[str, ...] = ()
    partitions: int = 1
    strategyName: Literal["", "random", "sequence"] = "sequence"  # noqa: N815 - the name on the wire
    file: str = ""
    threads: int = 0


class RmrRequest(msgspec.Struct, kw_only=True, frozen=True):
    paths: tuple[str, ...] = ()


class ClearRequest(msgspec.Struct, kw_only=True, frozen=True):
    paths: tuple[str, ...] = ()


Options = SyncRequest | WarmupRequest | RmrRequest | ClearRequest
OPTIONS: Final[Mapping[JobType, type[Options]]] = {
    JobType.SYNC: SyncRequest,
    JobType.WARMUP: WarmupRequest,
    JobType.RMR: RmrRequest,
    JobType.CLEAR: ClearRequest,
}


class ResultStatus(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    FAIL = "fail"


class Progress(msgspec.Struct, kw_only=True, rename="camel"):
    """How far a job is on one server. The job counts here while it runs; None means unknown."""

    files_done: int | None = None
    files_total: int | None = None
    bytes_done: int | None = None

    def add(self, files: int = 1, size: int | None = None) -> None:
        """Count files that are done, and their bytes if these are known."""
        self.files_done = (self.files_done or 0) + files
        if size is not None:
            self.bytes_done = (self.bytes_done or 0) + size


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job as served. Without a known figure it has no `progress`, as upstream's has none."""

    status: ResultStatus
    message: str = ""
    progress: Progress | msgspec.UnsetType = msgspec.UNSET

    def with_progress(self, progress: Progress) -> "JobResult":
        known = any(each is not None for each in (progress.files_done, progress.files_total, progress.bytes_done))
        return msgspec.structs.replace(self, progress=progress if known else msgspec.UNSET)


class CacheInfo(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """The cache status as served: integers as strings, sizes in bytes, those of disks in KiB. Empty means unknown.

    `error_massage` is misspelt as in upstream's protocol.
    """

    total_size: str = ""
    total_files: str = ""
    cached_size: str = ""
    disk_size: str = ""
    disk_used: str = ""
    disk_avail: str = ""
    error_massage: str = ""


NO_FLAGS: Final = frozenset({"source", "destination", "allowed-hosts", "allowed-directories"})


def decode(kind: JobType, body: bytes) -> Options:
    """Decode posted options.

    Raises:
        msgspec.DecodeError: they are not valid; the message quotes no value, since values may contain keys.
    """
    options: Options = msgspec.json.decode(body, type=OPTIONS[kind])
    return options


def flags(options: SyncRequest) -> list[str]:
    """Return the flags of a sync: `--x` for true, `--x=value` for values that are neither zero nor empty."""
    given: Mapping[str, Any] = msgspec.to_builtins(options)
    passed = {name: value for name, value in given.items() if value and name not in NO_FLAGS}
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in passed.items()]
