"""Untrusted paths. They are confined to a directory by opening one component after another without following links."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cacheserver.errors import JobFailed

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in the open directory `parent`, which the code that opened it closes. `path` is for messages."""

    parent: int
    name: str
    path: str


def parts_inside(base: Path, path: str) -> list[str]:
    """Return the components of `path` below `base`. This compares text only.

    Raises:
        JobFailed: the path is not below `base`, or has a .. component.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    above = [part for part in str(base).split("/") if part]
    if "\0" in path or ".." in parts:
        raise JobFailed(f"the path {path!r} has a component that is not allowed")
    if not path.startswith("/") or parts[: len(above)] != above:
        raise JobFailed(f"the path {path!r} is not inside {base}")
    return parts[len(above) :]


@contextlib.contextmanager
def open_entry(base: Path, path: str) -> Iterator[Entry]:
    """Open the directory of `path` and yield the entry. A symbolic link on the way is refused, wherever it leads."""
    parts = parts_inside(base, path)
    if not parts:
        raise JobFailed(f"the path {path!r} is {base} itself: name what is in it")
    with directory(base, parts[:-1], path) as parent:
        yield Entry(parent, parts[-1], path)


@contextlib.contextmanager
def directory(base: Path, parts: list[str], path: str) -> Iterator[int]:
    """Open a directory below `base`. Errors quote `path`."""
    current = _open(base, path)
    try:
        device = os.fstat(current).st_dev
        for part in parts:
            below = open_below(current, part, path)
            os.close(current)
            current = below
            # Another file system may be mounted there, such as the node's.
            if os.fstat(current).st_dev != device:
                raise JobFailed(f"the path {path!r} leads to another file system, mounted at {part!r}")
        yield current
    finally:
        os.close(current)


def _open(base: Path, path: str) -> int:
    try:
        # Links are followed here: the base comes from the command line of the server, not from a client.
        return os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise JobFailed(f"the path {path!r} cannot be opened: {base}: {error.strerror}") from None


def open_below(parent: int, name: str, path: str) -> int:
    """Open a subdirectory of an open directory, but no symbolic link."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        raise JobFailed(f"the path {path!r} does not exist") from None
    except OSError as error:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode):
                raise JobFailed(f"the path {path!r} goes through the symbolic link {name!r}: refused") from None
        raise JobFailed(f"the path {path!r} cannot be opened at {name!r}: {error.strerror}") from None


def existing(base: Path, path: str) -> Path:
    """Return a path if it exists inside `base` and no component is a link. `base` itself is accepted."""
    parts = parts_inside(base, path)
    if parts:
        with open_entry(base, path) as found:
            status = status_of(found)
            if stat.S_ISLNK(status.st_mode):
                raise JobFailed(f"the path {path!r} is a symbolic link, which is refused")
    return base.joinpath(*parts)


def status_of(found: Entry) -> os.stat_result:
    try:
        return os.lstat(found.name, dir_fd=found.parent)
    except FileNotFoundError:
        raise JobFailed(f"the path {found.path!r} does not exist") from None


def check_future(base: Path, path: str) -> None:
    """Check that a path that need not exist is inside `base`, and that its existing part has no link."""
    parts = parts_inside(base, path)
    for count in range(len(parts) + 1):
        try:
            with directory(base, parts[:count], path):
                pass
        except JobFailed:
            if (base.joinpath(*parts[:count])).is_symlink() or count == 0:
                raise
            return
