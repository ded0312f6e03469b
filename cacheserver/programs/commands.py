"""Runs programs from argument lists. Each has its own process group, which ends with the job."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

RUNTIME_VARIABLE: Final = "JOBGATE_CACHE_RUNTIME"
_CHUNK: Final = 64 * 1024  # bytes
_LINE_LIMIT: Final = 4096  # bytes; the rest of a longer line is dropped
_GRACE: Final = 5.0  # seconds between SIGTERM and SIGKILL
_ERROR_MARKS: Final = ("<FATAL>", "<ERROR>", "panic:")
_DETAIL_MARK: Final = "<DEBUG>"  # lines that no summary needs, and that may be many


class Output:
    """The output of a program in bounded memory: its last lines, and the last of the lines that report errors."""

    def __init__(self, on_line: Callable[[str], None] | None = None) -> None:
        self._on_line = on_line
        self._last: deque[str] = deque(maxlen=8)
        self._errors: deque[str] = deque(maxlen=4)
        self._partial = b""

    def feed(self, chunk: bytes) -> None:
        # Progress bars rewrite their line with a carriage return.
        *lines, self._partial = (self._partial + chunk).replace(b"\r", b"\n").split(b"\n")
        self._partial = self._partial[:_LINE_LIMIT]
        for line in lines:
            self._line(line[:_LINE_LIMIT])

    def close(self) -> None:
        self._line(self._partial)
        self._partial = b""

    def summary(self) -> str:
        """Return the error lines if there are any, else the last lines."""
        return "\n".join(self._errors or self._last)

    def _line(self, raw: bytes) -> None:
        line = raw.decode(errors="replace").strip()
        if not line:
            return
        if _DETAIL_MARK not in line:
            self._last.append(line)
        if any(mark in line for mark in _ERROR_MARKS):
            self._errors.append(line)
        if self._on_line is not None:
            self._on_line(line)


async def run(
    arguments: Sequence[str | Path], environment: Mapping[str, str], on_line: Callable[[str], None] | None = None
) -> tuple[int, str]:
    """Run a program and return its exit status and a summary of its output.

    On cancellation the whole process group is ended before this returns.
    """
    output = Output(on_line)
    process = await asyncio.create_subprocess_exec(
        *map(str, arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        # Without reading, a program that prints much would block on a full pipe.
        while chunk := await process.stdout.read(_CHUNK):
            output.feed(chunk)
        output.close()
        code = await process.wait()
    finally:
        await _end(process)
    return code, output.summary()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process group. Children may outlive its leader, so the group is killed in any case."""
    if process.returncode is None:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await process.wait()
    _signal(process.pid, signal.SIGKILL)
    await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill_orphans(identity: str) -> int:
    """Kill the processes that an earlier server of this identity left behind, and return their number.

    A mark in their environment identifies them. A stored pid could belong to another process by now.
    """
    mark = f"{RUNTIME_VARIABLE}={identity}".encode()
    killed = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            if mark in variables and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)
                killed += 1
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return killed
