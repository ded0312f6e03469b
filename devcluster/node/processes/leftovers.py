"""Finds processes that outlived their container or their agent.

For each process there is a file with its pid and start time; the pid alone could belong to another process by now. On
Linux, processes are also found by the identity of their container, which is in their environment.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MARK = "JOBGATE_DEV_CONTAINER"
PID_FILE = "pid"
LINUX = sys.platform.startswith("linux")


def remember(folder: Path, pid: int) -> None:
    (folder / PID_FILE).write_text(f"{pid} {start_time(pid)}\n")


def start_time(pid: int) -> str:
    """Return a value that differs between two processes with the same pid, or an empty string without a process."""
    if LINUX:
        return stat_of(pid).started
    return _start_time_by_ps(pid)


def _start_time_by_ps(pid: int) -> str:
    shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False, text=True)
    return "_".join(shown.stdout.split())


class Stat(NamedTuple):
    """What the system reports about a process. All values are empty if the process is gone."""

    state: bytes
    session: int
    started: str


def stat_of(pid: int) -> Stat:
    text = _read(pid, "stat")
    if not text:
        return Stat(b"", 0, "")
    # The name of the command may contain spaces and parentheses, so parsing starts after the last parenthesis.
    fields = text.rpartition(b")")[2].split()
    return Stat(fields[0], int(fields[3]), fields[19].decode())


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process, or nothing if the process is gone. An agent reads thousands when a pod ends."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - faster
        return file.readall()
    return b""


def pids() -> Iterator[int]:
    if LINUX:
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def find_marked(identity: str) -> list[int]:
    """Return the processes whose environment has an identity with this prefix."""
    prefix = identity.encode()
    return [pid for pid in pids() if pid != os.getpid() and any(mark.startswith(prefix) for mark in marks_of(pid))]


def marks_of(pid: int) -> tuple[bytes, ...]:
    prefix = f"{MARK}=".encode()
    entries = _read(pid, "environ").split(b"\0")
    return tuple(entry.removeprefix(prefix) for entry in entries if entry.startswith(prefix))


def kill_leftovers(data_dir: Path) -> list[int]:
    """Kill the processes that a former agent of this data directory left running, and return their pids."""
    killed = []
    patterns = (f"pods/*/containers/*/*/{PID_FILE}", f"pods/*/containers/*/*/exec/{PID_FILE}")
    for file in (found for pattern in patterns for found in data_dir.glob(pattern)):
        with contextlib.suppress(ValueError, OSError):
            number, started = file.read_text().split()
            # The pid may belong to another process by now.
            if start_time(int(number)) == started:
                os.killpg(int(number), signal.SIGKILL)
                killed.append(int(number))
            file.unlink()
    for pid in find_marked(f"{data_dir.resolve()}/"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
    return killed
