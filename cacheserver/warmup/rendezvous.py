"""The directory .warmup through which the servers of a set coordinate a warm-up.

The file `run` identifies the run by the name of its job, so that servers can distinguish it from an older one.
Heartbeats are empty files `beat.<i>.<n>` with increasing n. Entries of a directory are visible on all machines at once,
whatever the mount caches. They need no synchronized clocks and cost no object in the storage.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Final, Self

import msgspec

from cacheserver.errors import JobFailed
from cacheserver.files.paths import Entry
from cacheserver.files.removal import remove
from cacheserver.files.threads import Stop
from cacheserver.options import Progress

DIRECTORY_NAME: Final = ".warmup"
_RUN: Final = "run"
_SPLIT: Final = "split"
_MESSAGE_LIMIT: Final = 1000  # characters; the coordinator quotes it in its own result
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Run(msgspec.Struct, frozen=True):
    """One attempt at a job. `id` is random, since a job may be attempted again after a crash."""

    job: str
    id: str


class Rendezvous:
    """An open .warmup directory.

    It is held by a descriptor: after the directory is replaced or removed, no step of an old run can reach the new one.
    """

    def __init__(self, data_dir: Path, descriptor: int, run: Run, server: int) -> None:
        self._data_dir = data_dir
        self._descriptor = descriptor
        self.run = run
        self.server = server
        self._beats = 0

    @classmethod
    def begin(cls, data_dir: Path, job: str, server: int) -> Self | None:
        """Publish a new run atomically, or return None if .warmup exists already."""
        run = Run(job, secrets.token_hex(8))
        new = data_dir / f"{DIRECTORY_NAME}-{run.id}"
        new.mkdir(mode=0o700)
        rendezvous = cls(data_dir, os.open(new, _DIRECTORY), run, server)
        try:
            rendezvous.put(_RUN, msgspec.json.encode(run))
            rendezvous.put(f"beat.{server}.0")
            new.rename(data_dir / DIRECTORY_NAME)  # rename replaces an empty directory only
        except OSError as error:
            rendezvous.close()
            _remove(data_dir, new.name)
            # Some file systems report a non-empty target in one way, some in another.
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                return None
            raise
        return rendezvous

    @classmethod
    def join(cls, data_dir: Path, job: str, server: int) -> Self | None:
        """Join the run of this job, or return None if there is none."""
        try:
            descriptor = os.open(data_dir / DIRECTORY_NAME, _DIRECTORY)
        except FileNotFoundError:
            return None
        run = _run_of(descriptor)
        if run is None or run.job != job:
            os.close(descriptor)
            return None
        rendezvous = cls(data_dir, descriptor, run, server)
        try:
            # In this order a worker that has joined always has a heartbeat.
            rendezvous.put(f"beat.{server}.0")
            rendezvous.put(f"worker.{server}")
        except OSError:
            rendezvous.close()
            raise
        return rendezvous

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def open_list(self) -> BinaryIO:
        """Open the list of this server.

        Raises:
            OSError: the run has ended.
        """
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        return open(os.open(f"file.{self.server}", flags, dir_fd=self._descriptor), "rb")  # noqa: PTH123

    def names(self) -> list[str]:
        return names_in(self._descriptor)

    def current_names(self) -> list[str] | None:
        """Return the names of the entries, or None if the run has ended."""
        try:
            return self.names() if self.is_current() else None
        except OSError:
            return None

    def is_current(self) -> bool:
        """Return whether .warmup still belongs to this run."""
        return current_run(self._data_dir) == self.run

    def beat(self) -> None:
        """Send a heartbeat.

        Raises:
            FileNotFoundError: the run has ended.
        """
        # A rename, not a new file, so that the directory keeps one entry for each server.
        before, after = (f"beat.{self.server}.{count}" for count in (self._beats, self._beats + 1))
        os.rename(before, after, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        self._beats += 1

    def put(self, name: str, body: bytes = b"") -> None:
        """Create a file; it must not exist."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(name, flags, 0o600, dir_fd=self._descriptor), "wb") as file:  # noqa: PTH123
            file.write(body)

    def publish_lists(self, servers: Iterable[int]) -> None:
        """Publish the lists, then `split`. A worker that finds `split` without a list of its own came too late."""
        for server in servers:
            os.rename(f".file.{server}", f"file.{server}", src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        self.put(_SPLIT)

    def failed(self, message: str) -> None:
        """Report to the other servers, if possible, that this one has failed."""
        with contextlib.suppress(OSError):
            self.put(f"failed.{self.server}", message[:_MESSAGE_LIMIT].encode(errors="replace"))

    def failure(self, server: int) -> str:
        """Return the message of a server that has failed."""
        return (_read(self._descriptor, f"failed.{server}") or b"").decode(errors="replace")

    def end(self) -> None:
        """Remove the run if .warmup still belongs to it. Only the coordinator does this."""
        with contextlib.suppress(OSError):
            if self.is_current():
                discard(self._data_dir, self.run.id)

    def close(self) -> None:
        os.close(self._descriptor)


def is_split(names: Iterable[str]) -> bool:
    """Return whether the lists have been published."""
    return _SPLIT in names


def names_in(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in entries]


def beats(names: Iterable[str]) -> dict[int, int]:
    """Return the number of the last heartbeat of every server."""
    found: dict[int, int] = {}
    for name in names:
        kind, _, rest = name.partition(".")
        server, _, count = rest.partition(".")
        if kind == "beat" and server.isdecimal() and count.isdecimal():
            found[int(server)] = max(found.get(int(server), 0), int(count))
    return found


def with_prefix(names: Iterable[str], prefix: str) -> set[int]:
    """Return the indexes i of all entries `<prefix>.<i>`."""
    return {int(name.removeprefix(f"{prefix}.")) for name in names if _names_server(name, prefix)}


def _names_server(name: str, prefix: str) -> bool:
    return name.startswith(f"{prefix}.") and name.removeprefix(f"{prefix}.").isdecimal()


class FailureDetector:
    """Finds servers whose heartbeats have stopped. It compares times of the local clock only."""

    def __init__(self, clock: Callable[[], float], silence: float) -> None:
        self._clock = clock
        self._silence = silence
        self._seen: dict[int, tuple[int, float]] = {}

    def silent(self, names: Iterable[str], servers: Iterable[int]) -> set[int]:
        """Return those of `servers` that have sent no heartbeat for longer than the limit."""
        now, current = self._clock(), beats(names)
        for server in servers:
            count = current.get(server, -1)
            if server not in self._seen or self._seen[server][0] != count:
                self._seen[server] = (count, now)
        return {server for server in servers if now - self._seen[server][1] > self._silence}


def current_run(data_dir: Path) -> Run | None:
    """Return the run to which .warmup belongs, if any."""
    with contextlib.suppress(OSError):
        descriptor = os.open(data_dir / DIRECTORY_NAME, _DIRECTORY)
        try:
            return _run_of(descriptor)
        finally:
            os.close(descriptor)
    return None


def present_names(data_dir: Path) -> list[str] | None:
    """Return the names of the entries of .warmup, whichever run it belongs to, or None if it does not exist.

    Raises:
        JobFailed: it is not a directory.
    """
    try:
        descriptor = os.open(data_dir / DIRECTORY_NAME, _DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JobFailed(f"{data_dir / DIRECTORY_NAME} is not a directory: {error.strerror}") from None
    try:
        return names_in(descriptor)
    finally:
        os.close(descriptor)


def discard(data_dir: Path, suffix: str) -> None:
    """Rename .warmup out of the way, which is atomic, then remove it."""
    aside = f"{DIRECTORY_NAME}-ended-{suffix}"
    with contextlib.suppress(FileNotFoundError):
        (data_dir / DIRECTORY_NAME).rename(data_dir / aside)
    _remove(data_dir, aside)


def sweep(data_dir: Path) -> None:
    """Remove the directories next to .warmup that dead coordinators left."""
    with os.scandir(data_dir) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(f"{DIRECTORY_NAME}-")]
    for name in names:
        _remove(data_dir, name)


def _remove(data_dir: Path, name: str) -> None:
    parent = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        remove(Entry(parent, name, str(data_dir / name)), Stop(), Progress())
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
