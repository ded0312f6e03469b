"""Lists a directory instead of all its files, for a server that warms them up alone.

juicefs resolves every component of a listed path with a request to the metadata store. Below a listed directory it
makes one request for each directory. This halves the time for small files.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cacheserver.files.threads import Stop
from cacheserver.warmup.file_lists import ListEntry, can_be_listed

_MAX_PENDING: Final = 10_000  # whole directories in memory until it is known whether their parent is whole
# Files below the subdirectories of a whole directory. The progress of a warm-up counts lines that are done.
_MAX_FILES: Final = 10_000


@dataclass(slots=True)
class _Level:
    """An open directory. It is `whole` if juicefs would warm up exactly the files that jobgate lists below it."""

    path: bytes
    entries: "os._ScandirIterator[bytes]"
    whole: bool
    files: int = 0
    files_below: int = 0
    below: list[ListEntry] = field(default_factory=list)


def whole_directories(top: Path, data_dir: Path, stop: Stop) -> Iterator[ListEntry]:
    """Yield entries for the same files as `regular_files`, with a directory for its files if nothing else is below it.

    juicefs itself leaves out links and special files.
    """
    if any(part.startswith(".") for part in top.relative_to(data_dir).parts):
        return
    if stat.S_ISREG(top.lstat().st_mode):
        yield ListEntry(os.fsencode(top), 1)
        return
    with ExitStack() as opened:
        levels = [_open_level(os.fsencode(top), opened)]
        while levels:
            stop.check()
            level = levels[-1]
            entry = next(level.entries, None)
            if entry is None:
                levels.pop()
                level.entries.close()
                yield from _close_level(level, levels[-1] if levels else None)
                continue
            level.whole &= not entry.name.startswith(b".") and can_be_listed(entry.name)
            if entry.name.startswith(b"."):
                continue
            if entry.is_file(follow_symlinks=False):
                level.files += 1
            elif entry.is_dir(follow_symlinks=False):
                try:
                    levels.append(_open_level(entry.path, opened))
                except FileNotFoundError:
                    continue  # removed since it was listed


def _open_level(path: bytes, opened: ExitStack) -> _Level:
    return _Level(path, opened.enter_context(os.scandir(path)), whole=can_be_listed(path))


def _close_level(level: _Level, above: _Level | None) -> Iterator[ListEntry]:
    """Yield what is certain after all entries of the level were read. A whole directory is left to its parent."""
    if level.whole:
        part = ListEntry(level.path, level.files + level.files_below)
        if above is None:
            yield part
        elif part.files:
            above.below.append(part)
            above.files_below += part.files
        if above is not None and (len(above.below) > _MAX_PENDING or above.files_below > _MAX_FILES):
            yield from _give_up(above)
        return
    if above is not None:
        above.whole = False
    if level.files:
        yield from _files_in(level.path)
    yield from level.below


def _give_up(level: _Level) -> Iterator[ListEntry]:
    """Yield the pending directories, which are too many to keep or to count as one. Their parent comes in pieces."""
    level.whole = False
    yield from level.below
    level.below.clear()
    level.files_below = 0


def _files_in(path: bytes) -> Iterator[ListEntry]:
    try:
        entries = os.scandir(path)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if not entry.name.startswith(b".") and entry.is_file(follow_symlinks=False):
                yield ListEntry(entry.path, 1)
