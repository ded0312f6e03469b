"""Finds and ends the PostgreSQL processes that a killed owner left running."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.embedded_postgres.binaries import EmbeddedPostgresError

# Signals of fast shutdown, immediate shutdown and kill, with the seconds to wait after each.
GRACE = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
POLL_SECONDS = 0.02


async def until(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    """Poll until the condition holds, and return False if the time passes first."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    while not condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def end_leftovers(directory: Path) -> None:
    """End all PostgreSQL processes in `directory`: by fast shutdown, then by immediate shutdown, then by SIGKILL."""
    for number, seconds in GRACE:
        alive = processes_in(directory)
        if not alive:
            return
        postmaster = recorded_pid(directory)
        # The postmaster ends its children in order. Without it, each child gets the signal.
        for pid in [postmaster] if postmaster in alive else alive:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if await until(lambda: not processes_in(directory), seconds):
            return
    raise EmbeddedPostgresError(f"PostgreSQL processes that work in {directory} do not end: {processes_in(directory)}")


def processes_in(directory: Path) -> list[int]:
    """Return the PostgreSQL processes of a data directory, which is the working directory of each."""
    try:
        wanted = directory.stat()
    except FileNotFoundError:
        return []
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if _works_in(pid, directory, wanted)]


def _works_in(pid: int, directory: Path, wanted: os.stat_result) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        if (process / "comm").read_text().strip() != "postgres":
            return False
        try:
            return os.path.samestat((process / "cwd").stat(), wanted)
        except PermissionError:
            return os.fsencode(directory) in (process / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False


def recorded_pid(directory: Path) -> int:
    """Return the pid in postmaster.pid, or 0. The process may have ended, and the pid may belong to another one."""
    try:
        return int((directory / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return 0
