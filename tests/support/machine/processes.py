"""Finds running processes by a mark, for tests that check that no process is left."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.waiting import until


def processes_of(mark: str) -> dict[int, str]:
    """Pids and command lines of processes with `mark` in their command line, environment or working directory."""
    own = {os.getpid(), os.getppid()}
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid in own:
            continue
        try:
            command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            directory = str((entry / "cwd").readlink())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        # A zombie has neither command line nor environment: it is for its parent to reap.
        if mark.encode() in command + environment or mark in directory:
            found[pid] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


async def until_processes(mark: str, wanted: Callable[[dict[int, str]], bool], *, within: float = 60.0) -> None:
    await until(lambda: processes_of(mark), wanted, what=f"the processes of {mark} are as wanted", within=within)
