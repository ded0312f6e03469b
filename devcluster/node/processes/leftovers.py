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

MARK = "JOBGATE_DEV_CONTAINER"
PID_FILE = "pid"
LINUX = sys.platform.startswith("linux")


def remember(folder: Path, pid: int) -> None:
    (folder / PID_FILE).write_text(f"{pid} {start_time(pid)}\n")


def start_time(pid: int) -> str:
    """Return a value that differs between two processes with the same pid, or an empty string without a process."""
    if LINUX:
        return _stat_fields(pid)[1]
    return _start_time_by_ps(pid)


def _start_time_by_ps(pid: int) -> str:
    shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False, text=True)
    return "_".join(shown.stdout.split())


def _stat_fields(pid: int) -> tuple[int, str]:
    """Return session id and start time, or 0 and an empty string if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0, ""
    # The name of the command may contain spaces and parentheses, so parsing starts after the last parenthesis.
    fields = text.rpartition(")")[2].split()
    return int(fields[3]), fields[19]


def _pids() -> Iterator[int]:
    if LINUX:
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def marked(identity: str) -> list[int]:
    """Return the processes whose environment has an identity with this prefix."""
    wanted = f"{MARK}={identity}".encode()
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if environment.startswith(wanted) or b"\0" + wanted in environment:
                found.append(pid)
    return [pid for pid in found if pid != os.getpid()]


def descendants(session: int, identity: str) -> list[int]:
    """Return the processes of the session, and those with the identity, without the session leader."""
    found = {pid for pid in _pids() if _stat_fields(pid)[0] == session}
    if identity:
        found.update(marked(identity))
    return sorted(found - {session, os.getpid()})


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
    for pid in marked(f"{data_dir.resolve()}/"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
    return killed
