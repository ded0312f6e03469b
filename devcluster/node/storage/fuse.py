"""FUSE mounts, read from the mount table of the kernel.

The mounts themselves are never accessed: an access blocks if the server of the file system is gone.
"""

import ctypes
import os
import re
import sys
from pathlib import Path

DEVICE = Path("/dev/fuse")
MNT_DETACH = 2
_TABLE = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def why_no_fuse() -> str:
    """Return what this machine lacks for FUSE mounts, or an empty string if it lacks nothing."""
    if not sys.platform.startswith("linux"):
        return f"FUSE mounts need Linux, this node runs on {sys.platform}"
    if not DEVICE.exists():
        return f"{DEVICE} does not exist on this node"
    if os.geteuid() != 0 or not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"the node agent may not mount with {DEVICE}: it does not run as root"
    return ""


def mounts_below(folder: Path) -> list[Path]:
    """Return the mount points below a directory, the innermost first."""
    if not _TABLE.exists():
        return []
    prefix = f"{folder.resolve()}/"
    points = [_unescape(line.split(" ")[4]) for line in _TABLE.read_text().splitlines()]
    return [Path(point) for point in reversed(points) if point.startswith(prefix)]


def _unescape(field: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field)


def is_mounted(point: Path) -> bool:
    # Only the parent is resolved, because an access to a dead mount blocks.
    return point.parent.resolve() / point.name in mounts_below(point.parent)


def unmount(point: Path) -> None:
    """Detach the mount now. The kernel ends it when its last user is gone.

    Raises:
        OSError: the point is not mounted, or this process may not unmount it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(point), MNT_DETACH) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"umount {point}: {os.strerror(number)}")
