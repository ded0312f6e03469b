"""One local process: its start through `launch.py`, its output, its end, and the end of its descendants."""

import asyncio
import contextlib
import marshal
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override

from devcluster.node.processes import launch
from devcluster.node.processes.descendants import NO_SESSION, descendants
from devcluster.node.processes.leftovers import LINUX, remember

# Seconds to wait for the rest of the output, which a detached descendant may hold open.
DRAIN_SECONDS = 2.0
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of processes if the node itself has none."""

OutputSink = Callable[[str, bytes], None]


class StartError(Exception):
    """The process could not be started. The message is the one of runc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    source: Path
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The description of a process. `folder` is private to its container and contains no volume."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    folder: Path
    hostname: str
    mounts: tuple[Mount, ...] = ()
    namespaces: bool = False
    join: int | None = None
    hidden: Path | None = None
    """The folder of the node's own mounts, which are removed from the mount namespace of the process.

    Otherwise the process would keep each of these mounts busy.
    """
    last_signal: signal.Signals = signal.SIGKILL
    """The signal that the kernel sends to the process when the agent dies."""
    identity: str = ""
    """A value in the environment by which the process and its descendants are found."""


@dataclass(slots=True)
class Process:
    """A started process. `gone` is set once it has ended."""

    popen: "subprocess.Popen[bytes]"
    command: Command
    pumps: list[asyncio.Future[None]] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _awaited: bool = False
    _ended: bool = False

    @property
    def pid(self) -> int:
        return self.popen.pid

    async def wait(self) -> int:
        """Wait for the end, and return the exit code as a container runtime reports it: 128 + n after signal n."""
        self._awaited = True
        try:
            await _wait_for_exit(self.popen)
            self.gone.set()
            # The end of the first process ends all other processes of a container.
            self._signal(signal.SIGKILL)
            # Until it is reaped, no other process can have its pid, and thus the id of its session.
            session = self.pid if self.popen.returncode is None else NO_SESSION
            await descendants.end(session, self.command.identity)
            code = self.popen.wait()
            self._ended = True
        finally:
            self._awaited = False
        if self.pumps:
            await asyncio.wait(self.pumps, timeout=DRAIN_SECONDS)
        return code if code >= 0 else 128 - code

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process and all its descendants, also in other process groups and sessions.

        While `wait` runs, it kills the descendants once the process has ended.
        """
        if self._ended:
            return
        if not self._awaited:
            descendants.kill(self.pid, self.command.identity)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # After the process is reaped, another process may have its pid. On Linux, `descendants` finds the rest.
        if self.popen.returncode is None or not LINUX:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


async def start(command: Command, sink: OutputSink) -> Process:
    """Start the process. Its output is passed to `sink(stream, bytes)`.

    Raises:
        StartError: the command could not be executed.
    """
    command.folder.mkdir(parents=True, exist_ok=True)
    status_read, status_write = os.pipe()
    try:
        popen = _fork(command, status_write)
    except OSError as error:
        os.close(status_read)
        raise StartError(str(error)) from error
    finally:
        # Only the child may hold this end: its exec or exit must close the pipe.
        os.close(status_write)
    process = Process(popen, command)
    try:
        remember(command.folder, popen.pid)
        for name, stream in (("stdout", popen.stdout), ("stderr", popen.stderr)):
            assert stream is not None
            process.pumps.append(await _pump(stream, name, sink))
        failure = await _read_all(status_read)
    # A cancellation too: nothing else would end the process.
    except BaseException:
        process.kill()
        raise
    if failure:
        await process.wait()
        raise StartError(failure.decode(errors="replace"))
    return process


def _fork(command: Command, status: int) -> "subprocess.Popen[bytes]":
    # mkstemp makes the file private, and its name unique among concurrent probes.
    descriptor, spec = tempfile.mkstemp(prefix="launch-", dir=command.folder)
    with os.fdopen(descriptor, "wb") as file:
        # launch.py can load this without importing json, which takes time.
        marshal.dump(_spec(command), file)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", launch.__file__, spec, str(status)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(status,),
        # A session of its own, so that signals reach the whole process group and not the agent.
        start_new_session=True,
        env=dict(command.env),
        cwd="/",
    )


def _spec(command: Command) -> dict[str, object]:
    """Return the description, to be marshalled, from which `launch.main` starts the process."""
    mounts = [(str(m.source), m.target, m.read_only) for m in command.mounts]
    stage, hidden = str(command.folder / "stage"), str(command.hidden or "")
    return {
        "surroundings": (command.cwd, command.join, command.namespaces, command.hostname, stage, mounts, hidden),
        "argv": command.argv,
        "env": dict(command.env),
        "parent": (os.getpid(), int(command.last_signal)),
    }


class _Pump(asyncio.Protocol):
    def __init__(self, name: str, sink: OutputSink, done: "asyncio.Future[None]") -> None:
        self._name = name
        self._sink = sink
        self._done = done

    @override
    def data_received(self, data: bytes) -> None:
        self._sink(self._name, data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._sink(self._name, b"")
        if not self._done.done():
            self._done.set_result(None)


async def _pump(stream: object, name: str, sink: OutputSink) -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    await loop.connect_read_pipe(lambda: _Pump(name, sink, done), stream)
    return done


async def _read_all(descriptor: int) -> bytes:
    collected: list[bytes] = []
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    sink: OutputSink = lambda _, data: collected.append(data)  # noqa: E731
    transport, _ = await loop.connect_read_pipe(lambda: _Pump("status", sink, done), os.fdopen(descriptor, "rb", 0))
    try:
        await done
    finally:
        transport.close()
    return b"".join(collected)


async def _wait_for_exit(popen: "subprocess.Popen[bytes]") -> None:
    """Wait for the end without reaping the process, through a pidfd if the system has them, else in a thread."""
    if popen.returncode is not None:
        return
    if not hasattr(os, "pidfd_open"):
        await asyncio.to_thread(popen.wait)
        return
    # Until `wait` reaps the process, its pid is taken, so no signal can reach another process.
    descriptor = os.pidfd_open(popen.pid)
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: None if ended.done() else ended.set_result(None))
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
