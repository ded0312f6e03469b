"""Removes trees through open directories, without following links or entering other file systems."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cacheserver.errors import JobFailed
from cacheserver.files.paths import Entry, directory, open_below, open_entry, parts_inside, status_of
from cacheserver.files.threads import Stop
from cacheserver.options import Progress

_PASSES: Final = 5  # over a directory into which another process keeps writing
_EVERYTHING: Final = "/*"


def remove_paths(base: Path, paths: tuple[str, ...], stop: Stop, progress: Progress) -> None:
    """Remove the paths. All of them are checked first, so that one wrong path removes nothing.

    `progress` counts the removed files. How many there are is unknown: the trees are read as they are removed.
    """
    for path in paths:
        with open_entry(base, path) as found:
            status_of(found)
    for path in paths:
        with open_entry(base, path) as found:
            remove(found, stop, progress)


def clear_paths(bases: tuple[Path, ...], paths: tuple[str, ...], stop: Stop, progress: Progress) -> None:
    """Clear paths in cache directories. `dir/*` means the same as in a shell; a cache directory means `dir/*`.

    `progress` is as in `remove_paths`.
    """
    chosen = [(_base_of(bases, path), path) for path in paths]
    for base, path in chosen:
        if not _is_whole(base, path):
            with open_entry(base, path) as found:
                status_of(found)
        else:
            with directory(base, _directory_parts(base, path), path):
                pass
    for base, path in chosen:
        if not _is_whole(base, path):
            with open_entry(base, path) as found:
                remove(found, stop, progress)
        else:
            with directory(base, _directory_parts(base, path), path) as parent:
                _empty(parent, path, stop, progress)


def _base_of(bases: tuple[Path, ...], path: str) -> Path:
    for base in bases:
        if path == str(base) or path.startswith(f"{base}/"):
            _directory_parts(base, path)
            return base
    raise JobFailed(f"the path {path!r} is in none of the cache directories {', '.join(map(str, bases))}")


def _directory_parts(base: Path, path: str) -> list[str]:
    plain = path.removesuffix(_EVERYTHING)
    if "*" in plain:
        raise JobFailed(f"the path {path!r} has a pattern: only a last component * is understood")
    return parts_inside(base, plain)


def _is_whole(base: Path, path: str) -> bool:
    return path.endswith(_EVERYTHING) or not parts_inside(base, path)


def _empty(parent: int, path: str, stop: Stop, progress: Progress) -> None:
    """Remove the content of a directory except dot files."""
    for _ in range(_PASSES):
        removed = 0
        with os.scandir(parent) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    below = Entry(parent, entry.name, f"{path.removesuffix(_EVERYTHING)}/{entry.name}")
                    remove(below, stop, progress)
                    removed += 1
        if not removed:
            return


@dataclass(slots=True)
class _Level:
    descriptor: int
    name: str
    entries: "os._ScandirIterator[str]"
    passes: int = 1


def remove(found: Entry, stop: Stop, progress: Progress) -> None:
    """Remove a file, a link or a tree; one that does not exist is not an error. Memory grows with the depth only."""
    if _unlink(found.parent, found.name, progress):
        return
    # A mount point inside the tree has another device: its content does not belong to the tree.
    device = os.fstat(found.parent).st_dev
    levels: list[_Level] = []
    try:
        if (top := _enter(found.parent, found.name, found.path, device)) is None:
            return
        levels.append(top)
        while levels:
            stop.check()
            _step(levels, found, device, progress)
    finally:
        for level in levels:
            level.entries.close()
            os.close(level.descriptor)


def _step(levels: list[_Level], found: Entry, device: int, progress: Progress) -> None:
    """Remove the next entry of the deepest open directory, or that directory itself when it is empty."""
    level = levels[-1]
    entry = next(level.entries, None)
    if entry is not None:
        if not _unlink(level.descriptor, entry.name, progress):
            below = _enter(level.descriptor, entry.name, found.path, device)
            if below is not None:
                levels.append(below)
        return
    parent = levels[-2].descriptor if len(levels) > 1 else found.parent
    level.entries.close()
    try:
        os.rmdir(level.name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        # Not empty: another process writes into it.
        if level.passes == _PASSES:
            raise JobFailed(f"{found.path!r}: the directory {level.name!r} stays: {error.strerror}") from None
        level.passes += 1
        level.entries = os.scandir(level.descriptor)
        return
    levels.pop()
    os.close(level.descriptor)


def _unlink(parent: int, name: str, progress: Progress) -> bool:
    """Unlink an entry. Return whether it is gone, which is False for a directory."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    # For a directory, Linux reports EISDIR and POSIX prescribes EPERM.
    except (IsADirectoryError, PermissionError):
        return False
    progress.add()
    return True


def _enter(parent: int, name: str, path: str, device: int) -> _Level | None:
    """Open a subdirectory for removal, or return None if it is gone."""
    try:
        descriptor = open_below(parent, name, path)
    except JobFailed:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(name, dir_fd=parent)
            raise
        return None
    if os.fstat(descriptor).st_dev != device:
        os.close(descriptor)
        raise JobFailed(f"{path!r}: {name!r} is another file system, mounted there")
    return _Level(descriptor, name, os.scandir(descriptor))
