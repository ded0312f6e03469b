"""The local files that a sync may read and write: its source, its destination, and what every program needs."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from cacheserver.config import RuntimeConfig
from cacheserver.errors import JobFailed
from cacheserver.files.paths import check_future

_FILE: Final = "file://"
# Libraries, certificates, the configuration of the resolver. Not /proc/<pid> of other processes, and no devices.
_SYSTEM_FILES: Final = (
    *("/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc", "/run/systemd/resolve"),
    *("/proc/sys", "/proc/cpuinfo", "/proc/meminfo", "/sys/fs/cgroup", "/dev/null", "/dev/urandom", "/dev/random"),
)
_FILE_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "GOOGLE_APPLICATION_CREDENTIALS")
_FORBIDDEN: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))


@dataclass(frozen=True, slots=True)
class SyncAccess:
    """The paths that the kernel allows a sync to read and to write."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def local_path(uri: str) -> Path | None:
    """Return the path of a file:// URI, or None for another storage."""
    return Path(unquote(urlsplit(uri).path)) if uri.lower().startswith(_FILE) else None


def check_source(uri: str, config: RuntimeConfig, directories: Sequence[str]) -> None:
    """Check that a local source is in one of these directories. It blocks, because it reads the file system.

    To juicefs, a directory that does not exist is an empty source, which with delete-dst would empty the destination.

    Raises:
        JobFailed: the source does not exist, is not in these directories, or contains or is in a forbidden directory.
    """
    path = local_path(uri)
    if path is None:
        return
    try:
        present = path.is_dir() if uri.endswith("/") else path.exists()
        real = _listed_directory(uri, path).resolve()
    except OSError:
        present, real = False, path
    allowed = [Path(directory).resolve() for directory in directories]
    # Before anything about it is told.
    if not any(real.is_relative_to(directory) for directory in allowed):
        raise JobFailed(f"the source {path} is refused: it is in no directory for file:// sources")
    if not present:
        raise JobFailed(f"the source {path} is not there")
    for forbidden in (*_FORBIDDEN, *(path.resolve() for path in (*config.secrets, *config.cache_dirs))):
        if real.is_relative_to(forbidden) or forbidden.is_relative_to(real):
            raise JobFailed(f"the source {path} is refused: it is in {forbidden}, or above it")


def check_destination(uri: str, config: RuntimeConfig) -> None:
    """Check that a local destination is inside the data directory, which it need not exist for.

    Raises:
        JobFailed: it is outside, or a link leads out of it.
    """
    path = local_path(uri)
    if path is not None and config.data_dir is not None:
        check_future(config.data_dir, str(path))


def sync_access(
    source: str, destination: str, config: RuntimeConfig, program: Path, *, removes_source: bool
) -> SyncAccess:
    """Return what a sync may access.

    A source inside the data directory adds nothing: who can write there could make its path lead elsewhere.
    """
    reads = [*_SYSTEM_FILES, sys.prefix, sys.base_prefix, str(program), str(program.resolve())]
    reads += [os.environ[name] for name in _FILE_VARIABLES if name in os.environ]
    writes = ["/dev/null"]
    base = config.data_dir
    if (to := local_path(destination)) is not None:
        writes.append(str(base or _existing(to)))
    if (path := local_path(source)) is not None and not (base and path.is_relative_to(base)):
        listed = _listed_directory(source, path)
        reads.append(str(listed))
        writes += [str(listed)] if removes_source else []
    return SyncAccess(tuple(reads), tuple(writes))


def _listed_directory(uri: str, path: Path) -> Path:
    """Return the directory that juicefs lists. A URI without a slash at the end is a prefix of names in its parent."""
    return path if uri.endswith("/") else path.parent


def _existing(path: Path) -> Path:
    return next((found for found in (path, *path.parents) if found.is_dir()), path)
