"""Directories in place of all their files, for a server that warms them alone.

juicefs resolves a listed path component by component, each a question to the metadata store; below a directory it asks
once a directory. Small files are warmed in half the time so.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.cache_runtime.file_lists import Listed, can_be_listed
from app.cache_runtime.threads import Stop

_MOST: Final = 10_000  # directories that are held until it is known whether the one above them is whole


@dataclass(slots=True)
class _Level:
    path: bytes
    entries: "os._ScandirIterator[bytes]"
    whole: bool
    files: int = 0
    below: list[Listed] = field(default_factory=list)


def whole_directories(top: Path, data_dir: Path, stop: Stop) -> Iterator[Listed]:
    """The same files as `regular_files` tells: a directory with anything else below it is told file by file.

    juicefs itself leaves out links and what is neither file nor directory.
    """
    if any(part.startswith(".") for part in top.relative_to(data_dir).parts):
        return
    if stat.S_ISREG(top.lstat().st_mode):
        yield Listed(os.fsencode(top), 1)
        return
    with ExitStack() as opened:
        levels = [_opened(os.fsencode(top), opened)]
        while levels:
            stop.check()
            level = levels[-1]
            entry = next(level.entries, None)
            if entry is None:
                levels.pop()
                level.entries.close()
                yield from _told(level, levels[-1] if levels else None)
                continue
            level.whole &= not entry.name.startswith(b".") and can_be_listed(entry.name)
            if entry.name.startswith(b"."):
                continue
            if entry.is_file(follow_symlinks=False):
                level.files += 1
            elif entry.is_dir(follow_symlinks=False):
                try:
                    levels.append(_opened(entry.path, opened))
                except FileNotFoundError:
                    continue  # removed since it was listed


def _opened(path: bytes, opened: ExitStack) -> _Level:
    return _Level(path, opened.enter_context(os.scandir(path)), whole=can_be_listed(path))


def _told(level: _Level, above: _Level | None) -> Iterator[Listed]:
    """What can be told now that the level has been seen whole; the rest is left to the level above."""
    if level.whole:
        part = Listed(level.path, level.files + sum(part.files for part in level.below))
        if above is None:
            yield part
        elif part.files:
            above.below.append(part)
        if above is not None and len(above.below) > _MOST:
            yield from _in_pieces(above)
        return
    if above is not None:
        above.whole = False
    if level.files:
        yield from _files_in(level.path)
    yield from level.below


def _in_pieces(level: _Level) -> Iterator[Listed]:
    """Too many to remember."""
    level.whole = False
    yield from level.below
    level.below.clear()


def _files_in(path: bytes) -> Iterator[Listed]:
    try:
        entries = os.scandir(path)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if not entry.name.startswith(b".") and entry.is_file(follow_symlinks=False):
                yield Listed(entry.path, 1)
