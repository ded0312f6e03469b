"""Lists of millions of files. They are made and split in streams and never held in memory."""

import itertools
import os
import random
import stat
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from typing_extensions import override

from cacheserver.errors import JobFailed
from cacheserver.files.threads import Stop

_SAMPLES: Final = 3  # paths that a message quotes
_BUFFER: Final = 256 * 1024  # bytes; the volume is slow with small writes
_LINE_LIMIT: Final = 16 * 1024  # bytes; Linux paths have at most 4096


class ListEntry(NamedTuple):
    """A line of a list: a file, or a directory that stands for a number of files."""

    path: bytes
    files: int


@dataclass(slots=True)
class SkippedPaths:
    """The number of paths that were left out, and the first few of them."""

    count: int = 0
    samples: list[str] = field(default_factory=list)

    def add(self, path: bytes) -> None:
        self.count += 1
        if len(self.samples) < _SAMPLES:
            self.samples.append(ascii(os.fsdecode(path)))

    @override
    def __str__(self) -> str:
        return f"{self.count} ({', '.join(self.samples)}{', …' if self.count > len(self.samples) else ''})"


def regular_files(top: Path, data_dir: Path, stop: Stop) -> Iterator[ListEntry]:
    """Yield the regular files at or below `top`. Links and paths with a dot file below the data directory are left out.

    The open directories are the only state, so memory grows with the depth and not with the number of files.
    """
    if any(part.startswith(".") for part in top.relative_to(data_dir).parts):
        return
    if stat.S_ISREG(top.lstat().st_mode):
        yield ListEntry(os.fsencode(top), 1)
        return
    with ExitStack() as opened:
        levels = [opened.enter_context(os.scandir(os.fsencode(top)))]
        while levels:
            stop.check()
            entry = next(levels[-1], None)
            if entry is None:
                levels.pop().close()
            elif entry.name.startswith(b"."):
                continue
            elif entry.is_file(follow_symlinks=False):
                yield ListEntry(entry.path, 1)
            elif entry.is_dir(follow_symlinks=False):
                try:
                    levels.append(opened.enter_context(os.scandir(entry.path)))
                except FileNotFoundError:
                    continue  # removed since it was listed


def listed_files(file: Path, data_dir: Path, stop: Stop) -> Iterator[ListEntry]:
    """Yield the lines of a user's list, which are relative to the data directory or absolute inside it.

    Raises:
        JobFailed: a path is outside of the data directory, or, at the end, some paths do not exist.
    """
    base = os.fsencode(data_dir)
    missing = SkippedPaths()
    with file.open("rb", buffering=_BUFFER) as lines:
        for number, line in enumerate(iter(lambda: lines.readline(_LINE_LIMIT), b""), 1):
            stop.check()
            name = line.strip()
            if not name:
                continue
            path = os.path.join(base, name)  # noqa: PTH118 - bytes, which pathlib does not take
            if b".." in name.split(b"/") or not path.startswith(base + b"/"):
                raise JobFailed(f"line {number} of the file list is not inside {data_dir}: {os.fsdecode(name)!a}")
            if not os.path.lexists(path):
                missing.add(path)
                continue
            yield ListEntry(path, 1)
    if missing.count:
        raise JobFailed(f"paths of the file list that do not exist: {missing}")


def can_be_listed(path: bytes) -> bool:
    """Return whether a line can hold the path: `juicefs warmup` reads one path per line and trims it."""
    return b"\n" not in path and b"\r" not in path and path == path.strip()


@dataclass(slots=True)
class SplitResult:
    """The number of files for each server, and the paths that no list can hold.

    `sizes` has the number of files of each line if one server gets all lines. Otherwise each line is a file.
    """

    counts: dict[int, int]
    sizes: "array[int]" = field(default_factory=lambda: array("I"))
    skipped: SkippedPaths = field(default_factory=SkippedPaths)


def split(
    parts: Iterator[ListEntry], data_dir: Path, directory: int, servers: list[int], *, at_random: bool
) -> SplitResult:
    """Write the list of each server to `.file.<server>` in the open directory, in turn or to a random server.

    The paths are relative to the data directory, which servers may mount at different places.
    """
    start = len(os.fsencode(data_dir)) + 1
    result = SplitResult(dict.fromkeys(servers, 0))
    draw = random.Random()  # noqa: S311 - not for secrets
    with ExitStack() as opened:
        lists = [(server, opened.enter_context(_list_file(directory, server))) for server in servers]
        turn = 0
        for path, files in parts:
            if not can_be_listed(path):
                result.skipped.add(path)
                continue
            server, file = lists[draw.randrange(len(lists)) if at_random else turn % len(lists)]
            turn += 1
            result.counts[server] += files
            if len(lists) == 1:
                result.sizes.append(files)
            file.write(path[start:] + b"\n")
    return result


def count_lines(source: BinaryIO) -> int:
    """Return the number of lines of a list, and leave it at its beginning."""
    count = sum(chunk.count(b"\n") for chunk in iter(lambda: source.read(_BUFFER), b""))
    source.seek(0)
    return count


def batches(sizes: Iterable[int], limit: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of lines and of files of each batch of a list whose lines have these numbers of files.

    A batch ends with the line by which it has `limit` files or more.
    """
    lines, files = 0, 0
    for size in sizes:
        lines, files = lines + 1, files + size
        if files >= limit:
            yield lines, files
            lines, files = 0, 0
    if lines:
        yield lines, files


def copy_lines(source: BinaryIO, data_dir: Path, target: Path, count: int) -> None:
    """Copy the next `count` lines of a list, made absolute, to a file of their own."""
    base = os.fsencode(data_dir)
    with target.open("wb", buffering=_BUFFER) as file:
        for line in itertools.islice(source, count):
            file.write(base + b"/" + line)


def _list_file(directory: int, server: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return open(os.open(f".file.{server}", flags, 0o600, dir_fd=directory), "wb", buffering=_BUFFER)  # noqa: PTH123
