"""How much there is, how much of it is cached here, and what the disks have: each exact, and told apart if it fails."""

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.cache_runtime.errors import JobFailed
from app.cache_runtime.options import CacheStatus
from app.cache_runtime.places import Places
from app.cache_runtime.threads import Stop, in_thread

INFO_LINES: Final = 20
_KIB: Final = 1024
_FIRST: Final = 5.0
_STEP: Final = 2.0
_VIRTUAL: Final = frozenset({".accesslog", ".control", ".stats", ".config"})  # JuiceFS answers them itself
_FIGURE: Final = re.compile(r"^\s*(files|length)\s*:\s*(?:.*\((\d[\d,]*) Bytes\)|(\d[\d,]*))\s*$", re.MULTILINE)

Info = Callable[[Path], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Amount:
    files: int = 0
    length: int = 0


def pauses(longest: float) -> "list[float]":
    """The growing pauses between two looks, up to and including `longest`, which stays."""
    found, pause = [], _FIRST
    while pause < longest:
        found.append(pause)
        pause += _STEP
    return [*found, longest]


async def collected(places: Places, info: Info) -> CacheStatus:
    errors: list[str] = []
    figures: dict[str, str] = {}
    looks: list[Callable[[], Awaitable[dict[str, str]]]] = [
        lambda: _totals(places, info),
        lambda: _cached(places),
        lambda: _disks(places),
    ]
    for look in looks:
        try:
            async with asyncio.timeout(places.timeout):
                figures |= await look()
        except TimeoutError:
            errors.append(f"the cache could not be looked at within {places.timeout:g} seconds")
        except (JobFailed, OSError) as error:
            errors.append(str(error))
    massage = ";".join(dict.fromkeys(" ".join(error.split()) for error in errors))
    return CacheStatus(
        total_size=figures.get("total_size", ""),
        total_files=figures.get("total_files", ""),
        cached_size=figures.get("cached_size", ""),
        disk_size=figures.get("disk_size", ""),
        disk_used=figures.get("disk_used", ""),
        disk_avail=figures.get("disk_avail", ""),
        error_massage=massage,
    )


def amount(text: str) -> Amount:
    """Of what `juicefs info` says: plain digits, grouped ones, or bytes behind a rounded figure."""
    found = {match[1]: int((match[2] or match[3]).replace(",", "")) for match in _FIGURE.finditer(text)}
    if set(found) != {"files", "length"}:
        raise JobFailed("juicefs info said nothing of files and length")
    return Amount(found["files"], found["length"])


async def _totals(places: Places, info: Info) -> dict[str, str]:
    """The volume's own sums, without what top-level dot files and directories hold (.warmup is one)."""
    if places.data_dir is None:
        raise JobFailed("option dataDir not set")
    data_dir = places.data_dir
    whole = amount(await info(data_dir))
    plain, directories = await in_thread(lambda stop: _hidden(data_dir, stop))
    files, length = whole.files - plain.files, whole.length - plain.length
    for directory in directories:
        try:
            hidden = amount(await info(directory))
        except JobFailed:
            if directory.exists():
                raise
            continue
        files, length = files - hidden.files, length - hidden.length
    return {"total_size": str(max(length, 0)), "total_files": str(max(files, 0))}


def _hidden(data_dir: Path, stop: Stop) -> tuple[Amount, list[Path]]:
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
    return Amount(files, length), directories


async def _cached(places: Places) -> dict[str, str]:
    if not places.cache_dirs:
        raise JobFailed("option cacheDirs not set")
    size = await in_thread(lambda stop: sum(tree_size(path, stop) for path in places.cache_dirs))
    return {"cached_size": str(size)}


def tree_size(top: Path, stop: Stop) -> int:
    """Bytes of the regular files; one with several names counts once. What vanishes meanwhile is not there."""
    size, linked = 0, set()
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


async def _disks(places: Places) -> dict[str, str]:
    if not places.cache_dirs:
        raise JobFailed("option cacheDirs not set")
    size, used, available = await in_thread(lambda _: disk_figures(places.cache_dirs))
    return {"disk_size": str(size), "disk_used": str(used), "disk_avail": str(available)}


def disk_figures(paths: tuple[Path, ...]) -> tuple[int, int, int]:
    """Size, used and available in KiB over the devices below the paths, each device once."""
    sums = [0, 0, 0]
    devices = set()
    for path in paths:
        device = path.stat().st_dev
        if device in devices:
            continue
        devices.add(device)
        disk = os.statvfs(path)
        blocks = (disk.f_blocks, disk.f_blocks - disk.f_bfree, disk.f_bavail)
        for index, count in enumerate(blocks):
            sums[index] += -(-count * disk.f_frsize // _KIB)
    return sums[0], sums[1], sums[2]
