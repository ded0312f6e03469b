"""The words that a controller and this server share: options as posted, results and the cache's status as served."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec


class JobKind(StrEnum):
    SYNC = "sync"
    WARMUP = "warmup"
    RMR = "rmr"
    CLEAR = "clear"


class SyncOptions(msgspec.Struct, kw_only=True, frozen=True, rename="kebab"):
    """Where from and where to; the rest are flags of `juicefs sync` by their own names, zero meaning not given."""

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


class WarmupOptions(msgspec.Struct, kw_only=True, frozen=True):
    paths: tuple[str, ...] = ()
    partitions: int = 1
    strategyName: Literal["", "random", "sequence"] = "sequence"  # noqa: N815 - the name on the wire
    file: str = ""
    threads: int = 0


class RmrOptions(msgspec.Struct, kw_only=True, frozen=True):
    paths: tuple[str, ...] = ()


class ClearOptions(msgspec.Struct, kw_only=True, frozen=True):
    paths: tuple[str, ...] = ()


Options = SyncOptions | WarmupOptions | RmrOptions | ClearOptions
OPTIONS: Final[Mapping[JobKind, type[Options]]] = {
    JobKind.SYNC: SyncOptions,
    JobKind.WARMUP: WarmupOptions,
    JobKind.RMR: RmrOptions,
    JobKind.CLEAR: ClearOptions,
}


class ResultStatus(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    FAIL = "fail"


class JobResult(msgspec.Struct, frozen=True):
    status: ResultStatus
    message: str = ""


class CacheStatus(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Raw integers as strings: sizes in bytes, what the disks have in KiB; an empty string is not known."""

    total_size: str = ""
    total_files: str = ""
    cached_size: str = ""
    disk_size: str = ""
    disk_used: str = ""
    disk_avail: str = ""
    error_massage: str = ""


def decoded(kind: JobKind, body: bytes) -> Options:
    """Raises msgspec.DecodeError (of which ValidationError is one), whose message quotes no value."""
    options: Options = msgspec.json.decode(body, type=OPTIONS[kind])
    return options


def flags(options: SyncOptions) -> list[str]:
    """`--x` for true, `--x=value` for what is neither zero nor empty; the order is that of the fields."""
    given: Mapping[str, Any] = msgspec.to_builtins(options)
    told = {name: value for name, value in given.items() if value and name not in {"source", "destination"}}
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in told.items()]
