"""The directory .warmup in which the servers of a set meet: who is there, who still lives, whose run it is.

A run is told from the remains of another by the job's name in the file `run`. Life is told by empty files
`beat.<i>.<n>` whose n rises: a directory's entries are seen across machines at once, whatever the mount caches, they
need no agreement of clocks and cost no object in the storage.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Final, Self

import msgspec

from app.cache_runtime.errors import JobFailed
from app.cache_runtime.paths import Place
from app.cache_runtime.removal import remove
from app.cache_runtime.threads import Stop

MEETING: Final = ".warmup"
_RUN: Final = "run"
_SPLIT: Final = "split"
_MESSAGE_LIMIT: Final = 1000
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Run(msgspec.Struct, frozen=True):
    job: str
    id: str


class Meeting:
    """An open .warmup. Held by descriptor: once it is replaced or removed, no step of an old run reaches a new one."""

    def __init__(self, data_dir: Path, descriptor: int, run: Run, server: int) -> None:
        self._data_dir = data_dir
        self._descriptor = descriptor
        self.run = run
        self.server = server
        self._beats = 0

    @classmethod
    def begin(cls, data_dir: Path, job: str, server: int) -> Self | None:
        """Publish a new run in one step; None where one is there already."""
        run = Run(job, secrets.token_hex(8))
        new = data_dir / f"{MEETING}-{run.id}"
        new.mkdir(mode=0o700)
        meeting = cls(data_dir, os.open(new, _DIRECTORY), run, server)
        try:
            meeting.put(_RUN, msgspec.json.encode(run))
            meeting.put(f"beat.{server}.0")
            new.rename(data_dir / MEETING)  # replaces nothing but an empty directory
        except OSError as error:
            meeting.close()
            _remove(data_dir, new.name)
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                return None
            raise
        return meeting

    @classmethod
    def join(cls, data_dir: Path, job: str, server: int) -> Self | None:
        """None while there is no run of this job."""
        try:
            descriptor = os.open(data_dir / MEETING, _DIRECTORY)
        except FileNotFoundError:
            return None
        run = _run_of(descriptor)
        if run is None or run.job != job:
            os.close(descriptor)
            return None
        meeting = cls(data_dir, descriptor, run, server)
        try:
            meeting.put(f"beat.{server}.0")
            meeting.put(f"worker.{server}")
        except OSError:
            meeting.close()
            raise
        return meeting

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def share(self) -> BinaryIO:
        """This server's list; raises OSError where the run is over."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        return open(os.open(f"file.{self.server}", flags, dir_fd=self._descriptor), "rb")  # noqa: PTH123

    def names(self) -> list[str]:
        return names_in(self._descriptor)

    def current_names(self) -> list[str] | None:
        """None where the run is over."""
        try:
            return self.names() if self.is_current() else None
        except OSError:
            return None

    def is_current(self) -> bool:
        """Whether .warmup is still this run's."""
        return current_run(self._data_dir) == self.run

    def beat(self) -> None:
        """Raises FileNotFoundError where the run is over."""
        before, after = (f"beat.{self.server}.{count}" for count in (self._beats, self._beats + 1))
        os.rename(before, after, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        self._beats += 1

    def put(self, name: str, body: bytes = b"") -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(name, flags, 0o600, dir_fd=self._descriptor), "wb") as file:  # noqa: PTH123
            file.write(body)

    def publish_lists(self, servers: Iterable[int]) -> None:
        """The shares first; who then finds `split` and no share of its own came too late."""
        for server in servers:
            os.rename(f".file.{server}", f"file.{server}", src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        self.put(_SPLIT)

    def failed(self, message: str) -> None:
        with contextlib.suppress(OSError):
            self.put(f"failed.{self.server}", message[:_MESSAGE_LIMIT].encode(errors="replace"))

    def failure(self, server: int) -> str:
        return (_read(self._descriptor, f"failed.{server}") or b"").decode(errors="replace")

    def end(self) -> None:
        """The coordinator's: take the run away, if it is still ours."""
        with contextlib.suppress(OSError):
            if self.is_current():
                discard(self._data_dir, self.run.id)

    def close(self) -> None:
        os.close(self._descriptor)


def is_split(names: Iterable[str]) -> bool:
    return _SPLIT in names


def names_in(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in entries]


def beats(names: Iterable[str]) -> dict[int, int]:
    """The last beat of every server."""
    found: dict[int, int] = {}
    for name in names:
        kind, _, rest = name.partition(".")
        server, _, count = rest.partition(".")
        if kind == "beat" and server.isdecimal() and count.isdecimal():
            found[int(server)] = max(found.get(int(server), 0), int(count))
    return found


def with_prefix(names: Iterable[str], prefix: str) -> set[int]:
    """The servers that `<prefix>.<i>` names."""
    return {int(name.removeprefix(f"{prefix}.")) for name in names if _names_server(name, prefix)}


def _names_server(name: str, prefix: str) -> bool:
    return name.startswith(f"{prefix}.") and name.removeprefix(f"{prefix}.").isdecimal()


class Pulse:
    """Who has been silent for too long, by our own clock alone."""

    def __init__(self, clock: Callable[[], float], silence: float) -> None:
        self._clock = clock
        self._silence = silence
        self._seen: dict[int, tuple[int, float]] = {}

    def look(self, names: Iterable[str], servers: Iterable[int]) -> set[int]:
        """Those of `servers` that are silent."""
        now, current = self._clock(), beats(names)
        for server in servers:
            count = current.get(server, -1)
            if server not in self._seen or self._seen[server][0] != count:
                self._seen[server] = (count, now)
        return {server for server in servers if now - self._seen[server][1] > self._silence}


def current_run(data_dir: Path) -> Run | None:
    with contextlib.suppress(OSError):
        descriptor = os.open(data_dir / MEETING, _DIRECTORY)
        try:
            return _run_of(descriptor)
        finally:
            os.close(descriptor)
    return None


def present_names(data_dir: Path) -> list[str] | None:
    """What is in .warmup, whosesoever it is; None where there is none."""
    try:
        descriptor = os.open(data_dir / MEETING, _DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JobFailed(f"{data_dir / MEETING} is not a directory: {error.strerror}") from None
    try:
        return names_in(descriptor)
    finally:
        os.close(descriptor)


def discard(data_dir: Path, mark: str) -> None:
    """Out of the way in one step, then removed."""
    aside = f"{MEETING}-ended-{mark}"
    with contextlib.suppress(FileNotFoundError):
        (data_dir / MEETING).rename(data_dir / aside)
    _remove(data_dir, aside)


def sweep(data_dir: Path) -> None:
    """What coordinators that died left besides .warmup itself."""
    with os.scandir(data_dir) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(f"{MEETING}-")]
    for name in names:
        _remove(data_dir, name)


def _remove(data_dir: Path, name: str) -> None:
    parent = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        remove(Place(parent, name, str(data_dir / name)), Stop())
    finally:
        os.close(parent)


def _run_of(descriptor: int) -> Run | None:
    try:
        return msgspec.json.decode(_read(descriptor, _RUN) or b"", type=Run)
    except msgspec.DecodeError:
        return None


def _read(descriptor: int, name: str) -> bytes | None:
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor), "rb") as file:  # noqa: PTH123
            return file.read(64 * 1024)
    except OSError:
        return None
