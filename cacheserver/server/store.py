"""The directory of a server: one file for each posted option file and result, written atomically, mode 0600."""

import fcntl
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

import msgspec

from app.domain.cache.vocabulary import JobType
from cacheserver.errors import StartupError
from cacheserver.options import CacheInfo, JobResult, ResultStatus

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
STATUS: Final = "cacheStatus/cacheInfo.json"


@dataclass(frozen=True, slots=True)
class JobKey:
    kind: JobType
    name: str


class SaveResult(Enum):
    NEW = auto()
    KNOWN = auto()  # the same options were saved before
    CONFLICT = auto()  # the name belongs to other options


def options_folder(kind: JobType) -> str:
    return f"{kind}Options"


def result_folder(kind: JobType) -> str:
    return f"{kind}Result"


class FileStore:
    """The files of a server. One process at a time may use them; the lock ends with the process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise StartupError(f"another server has the directory {root}") from None
        folders = [name for kind in JobType for name in (options_folder(kind), result_folder(kind))]
        for name in (*folders, STATUS.split("/")[0]):
            (root / name).mkdir(mode=0o700, exist_ok=True)
        self.identity = self._identity()

    def close(self) -> None:
        os.close(self._lock)

    def _identity(self) -> str:
        """Return the random identity of the directory. It marks the processes that its servers start."""
        path = self._root / ".identity"
        if not path.exists():
            _write(path, secrets.token_hex(16).encode())
        return path.read_text().strip()

    def scratch(self) -> Path:
        """Return an empty directory for temporary files, without what an earlier server left there."""
        path = self._root / ".scratch"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def read(self, folder: str, name: str) -> bytes | None:
        """Return the content of the file that is served at /folder/name, or None if there is none."""
        try:
            return (self._root / folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def save_options(self, key: JobKey, body: bytes) -> SaveResult:
        # There is no await between the read and the write, and no other process has the directory.
        known = self.read(options_folder(key.kind), key.name)
        if known is not None:
            return SaveResult.KNOWN if known == body else SaveResult.CONFLICT
        _write(self._root / options_folder(key.kind) / key.name, body)
        return SaveResult.NEW

    def options(self, key: JobKey) -> bytes:
        return (self._root / options_folder(key.kind) / key.name).read_bytes()

    def save_result(self, key: JobKey, result: JobResult) -> None:
        _write(self._root / result_folder(key.kind) / key.name, msgspec.json.encode(result))

    def result(self, key: JobKey) -> JobResult | None:
        body = self.read(result_folder(key.kind), key.name)
        return None if body is None else msgspec.json.decode(body, type=JobResult)

    def save_status(self, status: CacheInfo) -> None:
        _write(self._root / STATUS, msgspec.json.encode(status))

    def unfinished_jobs(self) -> list[JobKey]:
        """Return the jobs without a result or with the result `running`, in the order of their arrival."""
        found: list[tuple[int, JobKey]] = []
        # Temporary files of a write that the death of the server interrupted.
        for half_written in self._root.glob("*/.*"):
            if half_written.is_file():
                half_written.unlink()
        for kind in JobType:
            for path in (self._root / options_folder(kind)).iterdir():
                key = JobKey(kind, path.name)
                result = self.result(key)
                if result is None or result.status is ResultStatus.RUNNING:
                    # Options are never rewritten, so the time of the file is that of its arrival.
                    found.append((path.stat().st_mtime_ns, key))
        return [key for _, key in sorted(found, key=lambda item: (item[0], item[1].name))]


def _write(path: Path, body: bytes) -> None:
    """Write a file atomically and durably: after a power failure there is the whole file or none."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123 - sets the mode
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    # The rename is durable only after a sync of the directory.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
