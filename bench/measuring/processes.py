"""Read CPU time and memory of processes from the kernel, and find free ports."""

import os
import socket
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")  # the unit of times in /proc


def _fields(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on; the name before them can contain any character."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """A process and its living descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents.setdefault(int(_fields(int(entry.name))[1]), []).append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    found, left = [], [root]
    while left:
        found.append(left[-1])
        left += parents.get(left.pop(), [])
    return found


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal, or ended."""
    try:
        return _fields(pid)[0] in "TZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def cpu_seconds(root: int) -> float:
    """User and system time of a process tree, including ended children that were waited for."""
    total = 0
    for pid in tree(root):
        try:
            total += sum(int(value) for value in _fields(pid)[11:15])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / _TICKS


def free_ports(count: int) -> int:
    """The first of `count` consecutive free ports."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first: int = probe.getsockname()[1]
        if first + count < 65536 and all(_is_free(port) for port in range(first, first + count)):
            return first
    raise RuntimeError(f"there are no {count} consecutive free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
