"""Measures the volume, the cache on this node and its disks. Each part is exact; one that fails leaves the others."""

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cacheserver.config import RuntimeConfig
from cacheserver.errors import JobFailed
from cacheserver.files.threads import Stop, in_thread
from cacheserver.options import CacheInfo

INFO_LINES: Final = 20
_KIB: Final = 1024
_FIRST_PAUSE: Final = 5.0  # seconds, as upstream
_PAUSE_STEP: Final = 2.0
_VIRTUAL: Final = frozenset(
    {".accesslog", ".control", ".stats", ".config"}
)  # served by JuiceFS itself and part of no sum
_FIGURE: Final = re.compile(r"^\s*(files|length)\s*:\s*(?:.*\((\d[\d,]*) Bytes\)|(\d[\d,]*))\s*$", re.MULTILINE)

Info = Callable[[Path], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class FileTotals:
    """The number of some files and the sum of their sizes in bytes."""

    files: int = 0
    length: int = 0


def pauses(longest: float) -> list[float]:
    """Return the increasing pauses in seconds between measurements; the last one is `longest`, which repeats."""
    found, pause = [], _FIRST_PAUSE
    while pause < longest:
        found.append(pause)
        pause += _PAUSE_STEP
    return [*found, longest]


async def collect(config: RuntimeConfig, info: Info) -> CacheInfo:
    """Measure everything. `info` returns the output of `juicefs info` for a path; errors become part of the result."""
    errors: list[str] = []
    figures: dict[str, str] = {}
    measurements: list[Callable[[], Awaitable[dict[str, str]]]] = [
        lambda: _totals(config, info),
        lambda: _measure_cache(config),
        lambda: _disks(config),
    ]
    for measure in measurements:
        try:
            async with asyncio.timeout(config.timeout):
                figures |= await measure()
        except TimeoutError:
            errors.append(f"the cache could not be measured within {config.timeout:g} seconds")
        except (JobFailed, OSError) as error:
            errors.append(str(error))
    message = ";".join(dict.fromkeys(" ".join(error.split()) for error in errors))
    return CacheInfo(
        total_size=figures.get("total_size", ""),
        total_files=figures.get("total_files", ""),
        cached_size=figures.get("cached_size", ""),
        disk_size=figures.get("disk_size", ""),
        disk_used=figures.get("disk_used", ""),
        disk_avail=figures.get("disk_avail", ""),
        error_massage=message,
    )


def parse_info(text: str) -> FileTotals:
    """Parse the output of `juicefs info`: plain digits, grouped digits, or bytes after a rounded size.

    Raises:
        JobFailed: the output has no totals.
    """
    found = {match[1]: int((match[2] or match[3]).replace(",", "")) for match in _FIGURE.finditer(text)}
    if set(found) != {"files", "length"}:
        raise JobFailed("the output of juicefs info has no files and length")
    return FileTotals(found["files"], found["length"])


async def _totals(config: RuntimeConfig, info: Info) -> dict[str, str]:
    """Return the totals of the volume without its top-level dot files and directories, such as .warmup."""
    if config.data_dir is None:
        raise JobFailed("option dataDir not set")
    data_dir = config.data_dir
    whole = parse_info(await info(data_dir))
    plain, directories = await in_thread(lambda stop: _measure_hidden(data_dir, stop))
    files, length = whole.files - plain.files, whole.length - plain.length
    for directory in directories:
        try:
            hidden = parse_info(await info(directory))
        except JobFailed:
            if directory.exists():
                raise
            continue  # removed since it was listed
        files, length = files - hidden.files, length - hidden.length
    return {"total_size": str(max(length, 0)), "total_files": str(max(files, 0))}


def _measure_hidden(data_dir: Path, stop: Stop) -> tuple[FileTotals, list[Path]]:
    """Return the totals of the top-level dot files, and the top-level dot directories."""
    files, length, directories = 0, 0, []
    with os.scandir(data_dir) as entries:
        for entry in entries:
            stop.check()
            if not entry.name.startswith(".") or entry.name in _VIRTUAL:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(status.st_mode):
                directories.append(Path(entry.path))
            else:
                files, length = files + 1, length + status.st_size
    return FileTotals(files, length), directories


async def _measure_cache(config: RuntimeConfig) -> dict[str, str]:
    if not config.cache_dirs:
        raise JobFailed("option cacheDirs not set")
    size = await in_thread(lambda stop: sum(tree_size(path, stop) for path in config.cache_dirs))
    return {"cached_size": str(size)}


def tree_size(top: Path, stop: Stop) -> int:
    """Return the bytes of the regular files below a directory. A file with several names counts once.

    Files may vanish during the walk, since JuiceFS evicts cached blocks at any time.
    """
    size, linked = 0, set()
    # A stack of open directories instead of recursion: caches are deep, and memory grows with the depth only.
    levels = [os.scandir(top)]
    try:
        while levels:
            stop.check()
            entry = next(levels[-1], None)
            if entry is None:
                levels.pop().close()
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    levels.append(os.scandir(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    # Only files with several names are remembered, so that the set stays small.
                    if status.st_nlink > 1 and status.st_ino in linked:
                        continue
                    if status.st_nlink > 1:
                        linked.add(status.st_ino)
                    size += status.st_size
            except FileNotFoundError:
                continue
    finally:
        for level in levels:
            level.close()
    return size


async def _disks(config: RuntimeConfig) -> dict[str, str]:
    if not config.cache_dirs:
        raise JobFailed("option cacheDirs not set")
    size, used, available = await in_thread(lambda _: disk_figures(config.cache_dirs))
    return {"disk_size": str(size), "disk_used": str(used), "disk_avail": str(available)}


def disk_figures(paths: tuple[Path, ...]) -> tuple[int, int, int]:
    """Return (size, used, available) in KiB, summed over the devices of the paths. Each device counts once."""
    sums = [0, 0, 0]
    devices = set()
    for path in paths:
        device = path.stat().st_dev
        if device in devices:
            continue
        devices.add(device)
        disk = os.statvfs(path)
        # As df: blocks that only root may use are neither used nor available.
        blocks = (disk.f_blocks, disk.f_blocks - disk.f_bfree, disk.f_bavail)
        for index, count in enumerate(blocks):
            # Rounded up, as df does.
            sums[index] += -(-count * disk.f_frsize // _KIB)
    return sums[0], sums[1], sums[2]
