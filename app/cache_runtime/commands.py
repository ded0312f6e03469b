"""Programs run from argument lists, each in a process group of its own that ends with the job."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

RUNTIME_VARIABLE: Final = "JOBGATE_CACHE_RUNTIME"
_CHUNK: Final = 64 * 1024
_LINE_LIMIT: Final = 4096
_GRACE: Final = 5.0  # between SIGTERM and SIGKILL
_LOUD: Final = ("<FATAL>", "<ERROR>", "panic:")


class Output:
    """What a program said, in bounded memory: its last lines, and of the lines that tell of errors the last as well."""

    def __init__(self, on_line: Callable[[str], None] | None = None) -> None:
        self._on_line = on_line
        self._last: deque[str] = deque(maxlen=8)
        self._loud: deque[str] = deque(maxlen=4)
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        self._rest = self._rest[:_LINE_LIMIT]
        for line in lines:
            self._line(line[:_LINE_LIMIT])

    def close(self) -> None:
        self._line(self._rest)
        self._rest = b""

    def summary(self) -> str:
        """The errors if it named any, else its last words."""
        return "\n".join(self._loud or self._last)

    def _line(self, raw: bytes) -> None:
        line = raw.decode(errors="replace").strip()
        if not line:
            return
        self._last.append(line)
        if any(mark in line for mark in _LOUD):
            self._loud.append(line)
        if self._on_line is not None:
            self._on_line(line)


async def run(
    arguments: Sequence[str | Path], environment: Mapping[str, str], on_line: Callable[[str], None] | None = None
) -> tuple[int, str]:
    """Exit status and summary of what was said. Cancelled, the whole process group is ended before this returns."""
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
        while chunk := await process.stdout.read(_CHUNK):
            output.feed(chunk)
        output.close()
        code = await process.wait()
    finally:
        await _end(process)
    return code, output.summary()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Nothing of the group survives, whether its leader has ended or not."""
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


def kill_left_behind(identity: str, proc: Path = Path("/proc")) -> int:
    """Ends what a server of this identity started and could not end, because it was killed itself; how many there were.

    They are told by their environment, which only their owner can write, so that a pid used again is nobody's death.
    """
    mark = f"{RUNTIME_VARIABLE}={identity}".encode()
    killed = 0
    for entry in proc.glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            if mark in variables and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)
                killed += 1
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return killed
