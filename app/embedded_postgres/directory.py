"""The directory of an embedded server, and the lock of its owner.

<directory>/lock            locked while an owner lives
            pgdata/         the database cluster, complete since it is created by rename
            initdb.partial/ the database cluster during its creation
            run/            the socket; in another, fixed place if the path would be too long
            server.log      the output of PostgreSQL; server.log.1 is the previous one
"""

import fcntl
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from app.embedded_postgres.binaries import EmbeddedPostgresError

USER = DATABASE = "jobgate"
PORT = 5432  # a name on a socket, not a TCP port
SOCKET_PATH_LIMIT = 100  # sockaddr_un holds 108 on Linux, 104 on BSD
LOG_LIMIT_BYTES = 10 * 1024 * 1024
LOG_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class PostgresDirectory:
    """The paths of an embedded server."""

    path: Path

    @property
    def pgdata(self) -> Path:
        return self.path / "pgdata"

    @property
    def partial(self) -> Path:
        return self.path / "initdb.partial"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def run(self) -> Path:
        """Return the socket directory. It depends on directory and environment only, so that the URL is stable."""
        near = self.path / "run"
        if len(os.fsencode(near / self.socket_name)) <= SOCKET_PATH_LIMIT:
            return near
        short = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path(short) / f"jobgate-{digest}"

    @property
    def socket_name(self) -> str:
        return f".s.PGSQL.{PORT}"

    @property
    def socket(self) -> Path:
        return self.run / self.socket_name

    @property
    def url(self) -> str:
        query = urlencode({"host": str(self.run), "port": PORT}, quote_via=quote, safe="/")
        return f"postgresql://{USER}@/{DATABASE}?{query}"

    def prepare(self, identity: str) -> None:
        """Create the directory and the socket directory, private to the user that PostgreSQL runs as."""
        if ":" in identity:
            self.lend(self.path, identity)
        self.run.mkdir(mode=0o700, exist_ok=True)
        self.lend(self.run, identity)
        found = self.run.lstat()
        if not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077 or not _is_ours(found, identity):
            raise EmbeddedPostgresError(f"{self.run} must be a directory that nobody else can enter; remove it")
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_name("server.log.1"))

    @staticmethod
    def lend(path: Path, identity: str) -> None:
        """Change the owner of a file to the user that PostgreSQL runs as, unless a user namespace does so."""
        if ":" in identity and path.lstat().st_uid == os.geteuid():
            uid, gid = identity.split(":")
            os.chown(path, int(uid), int(gid), follow_symlinks=False)

    def persist_names(self) -> None:
        """Make a rename in the directory durable."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def log_tail(self, since: int) -> str:
        with self.log.open("rb") as log:
            log.seek(since)
            return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:])


def _is_ours(found: os.stat_result, identity: str) -> bool:
    return found.st_uid == (int(identity.partition(":")[0]) if ":" in identity else os.geteuid())


class OwnerLock:
    """Allows one live owner of a directory. The kernel releases the lock with the process, however that ends."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        if self._descriptor is not None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(descriptor, 20).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise EmbeddedPostgresError(
                f"the embedded PostgreSQL in {self._path.parent} is in use by another process (pid {owner}): "
                "stop that one, or use another data directory"
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
