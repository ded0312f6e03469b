"""What a sync may touch of this machine's files: its source, its destination, and what every program needs."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from app.cache_runtime.errors import JobFailed
from app.cache_runtime.paths import check_future
from app.cache_runtime.places import Places

_FILE: Final = "file://"
# Libraries, certificates, the resolver's configuration; nothing of other processes and no device.
_OF_PROGRAMS: Final = (
    *("/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc", "/run/systemd/resolve"),
    *("/proc/sys", "/proc/cpuinfo", "/proc/meminfo", "/sys/fs/cgroup", "/dev/null", "/dev/urandom", "/dev/random"),
)
_NAMED_BY: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "GOOGLE_APPLICATION_CREDENTIALS")
_KEPT: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))


@dataclass(frozen=True, slots=True)
class Reach:
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def local(uri: str) -> Path | None:
    """The path that a URI of the file system names; None for another storage's."""
    return Path(unquote(urlsplit(uri).path)) if uri.lower().startswith(_FILE) else None


def check_source(uri: str, places: Places) -> None:
    """To juicefs, a directory that is not there is an empty one. Blocks as file systems do."""
    path = local(uri)
    if path is None:
        return
    try:
        present = path.is_dir() if uri.endswith("/") else path.exists()
        real = _listed_of(uri, path).resolve()
    except OSError:
        present, real = False, path
    if not present:
        raise JobFailed(f"the source {path} is not there")
    for kept in (*_KEPT, *(secret.resolve() for secret in places.secrets)):
        if real.is_relative_to(kept) or kept.is_relative_to(real):
            raise JobFailed(f"the source {path} is refused: it is in {kept}, or above it")


def check_destination(uri: str, places: Places) -> None:
    path = local(uri)
    if path is not None and places.data_dir is not None:
        check_future(places.data_dir, str(path))


def reach(source: str, destination: str, places: Places, program: Path, *, removes_source: bool) -> Reach:
    """A source inside the data directory adds nothing: whoever writes there could change where its path leads."""
    reads = [*_OF_PROGRAMS, sys.prefix, sys.base_prefix, str(program), str(program.resolve())]
    reads += [os.environ[name] for name in _NAMED_BY if name in os.environ]
    writes = ["/dev/null"]
    base = places.data_dir
    if (to := local(destination)) is not None:
        writes.append(str(base or _existing(to)))
    if (path := local(source)) is not None and not (base and path.is_relative_to(base)):
        listed = _listed_of(source, path)
        reads.append(str(listed))
        writes += [str(listed)] if removes_source else []
    return Reach(tuple(reads), tuple(writes))


def _listed_of(uri: str, path: Path) -> Path:
    """Without a slash it is the beginning of names, and its parent is what is listed."""
    return path if uri.endswith("/") else path.parent


def _existing(path: Path) -> Path:
    return next((found for found in (path, *path.parents) if found.is_dir()), path)
