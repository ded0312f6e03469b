"""The files that a process is configured with."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

_MAX_BYTES: Final = 16 << 20


def check_file(path: str | Path) -> None:
    """Raise an OSError unless a file can be read to its end: a device may have none, and a pipe may have no writer."""
    found = Path(path).stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is a device, pipe or socket; accepted: a regular file", str(path))
    if found.st_size > _MAX_BYTES:
        raise OSError(errno.EFBIG, f"has {found.st_size >> 20} MiB; accepted: up to {_MAX_BYTES >> 20} MiB", str(path))
