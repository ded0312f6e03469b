"""A small file system that a test can fill."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(point: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of this size, in memory, at a new directory. The test is skipped if this user may not."""
    point.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "jobgate-test", str(point)]
    ran = subprocess.run(mount, capture_output=True, text=True, timeout=30, check=False)
    if ran.returncode:
        pytest.skip(f"this user may not mount a tmpfs: run the test as root ({ran.stderr.strip()})")
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", str(point)], capture_output=True, timeout=30, check=True)
