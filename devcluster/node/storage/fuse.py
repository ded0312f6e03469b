"""What the kernel says about mounts, without touching them: a file system whose server is gone blocks who looks in."""

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
    """Say what this machine lacks for FUSE mounts; empty when it has all."""
    if not sys.platform.startswith("linux"):
        return f"FUSE mounts need Linux, this node runs on {sys.platform}"
    if not DEVICE.exists():
        return f"{DEVICE} does not exist on this node"
    if os.geteuid() != 0 or not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"the node agent may not mount with {DEVICE}: it does not run as root"
    return ""


def mounts_below(folder: Path) -> list[Path]:
    """The mount points inside a directory, the innermost first."""
    if not _TABLE.exists():
        return []
    prefix = f"{folder.resolve()}/"
    points = [_unescape(line.split(" ")[4]) for line in _TABLE.read_text().splitlines()]
    return [Path(point) for point in reversed(points) if point.startswith(prefix)]


def _unescape(field: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field)


def is_mounted(point: Path) -> bool:
    # Only its parent is resolved: the point itself may be a dead mount.
    return point.parent.resolve() / point.name in mounts_below(point.parent)


def unmount(point: Path) -> None:
    """Take the mount off now, and let the kernel end it when the last user is gone.

    Raises:
        OSError: it is not mounted, or may not be taken off.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(point), MNT_DETACH) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"umount {point}: {os.strerror(number)}")
