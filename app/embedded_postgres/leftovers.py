"""What an owner that was killed may have left: running processes, a pid file, a socket."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.embedded_postgres.binaries import EmbeddedPostgresError

GRACE = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
POLL_SECONDS = 0.02


async def until(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    """Wait for a condition that no event announces; false when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    while not condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def end_leftovers(directory: Path) -> None:
    """End every PostgreSQL process that still works in `directory`: fast, then immediate, then by force."""
    for number, seconds in GRACE:
        alive = processes_in(directory)
        if not alive:
            return
        postmaster = recorded_pid(directory)
        # While the postmaster lives it ends its children in order; without it they are ended one by one.
        for pid in [postmaster] if postmaster in alive else alive:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if await until(lambda: not processes_in(directory), seconds):
            return
    raise EmbeddedPostgresError(f"PostgreSQL processes that work in {directory} do not end: {processes_in(directory)}")


def processes_in(directory: Path) -> list[int]:
    """Every PostgreSQL process changes into its data directory: that is how to know one by."""
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
    """The pid in postmaster.pid, 0 when there is none; it may be dead or somebody else's by now."""
    try:
        return int((directory / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return 0
