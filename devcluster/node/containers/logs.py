"""Container logs in the CRI format, and the options of `kubectl logs`.

2026-01-02T03:04:05.678901234Z stdout F a whole line
2026-01-02T03:04:05.678901234Z stderr P a part of a line that is longer than the limit
"""

import io
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from devcluster import clock

# The limit of container runtimes for one CRI line.
PART_BYTES = 16 * 1024
BLOCK = 65536


class LogWriter:
    """Writes the output of a process as CRI lines, up to a limit, so that no pod fills the disk."""

    def __init__(self, path: Path, limit: int, clock_ns: Callable[[], int] = time.time_ns) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, so that a client that follows the log sees each line at once.
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._left = limit
        self._clock_ns = clock_ns
        self._rest = {"stdout": b"", "stderr": b""}

    def write(self, stream: str, data: bytes) -> None:
        """Write bytes of one stream. No bytes mean the end of the stream, and flush an incomplete line."""
        stamp = clock.nano_timestamp(self._clock_ns())
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        out = [_cri(stamp, stream, part, tag) for line in lines for part, tag in _parts(line, last=b"F")]
        if rest and (not data or len(rest) >= PART_BYTES):
            out += [_cri(stamp, stream, part, b"P") for part, _ in _parts(rest, last=b"P")]
            rest = b""
        self._rest[stream] = rest
        self._put(b"".join(out))

    def close(self) -> None:
        for stream in self._rest:
            self.write(stream, b"")
        self._file.close()

    def _put(self, data: bytes) -> None:
        if data and self._left > 0 and not self._file.closed:
            self._left -= len(data)
            self._file.write(data)


def _parts(line: bytes, *, last: bytes) -> Iterator[tuple[bytes, bytes]]:
    while len(line) > PART_BYTES:
        yield line[:PART_BYTES], b"P"
        line = line[PART_BYTES:]
    yield line, last


def _cri(stamp: str, stream: str, part: bytes, tag: bytes) -> bytes:
    return b" ".join((stamp.encode(), stream.encode(), tag, part)) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The options of a log request. `since` covers sinceTime and sinceSeconds."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None


class LogFilter:
    """Renders CRI lines one by one. `done` is set once the limit of bytes is reached."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._left = options.limit_bytes
        self._is_new_line = True
        self.done = options.limit_bytes == 0

    def render(self, raw: bytes) -> bytes:
        stamp, _, rest = raw.partition(b" ")
        _stream, _, rest = rest.partition(b" ")
        tag, _, content = rest.partition(b" ")
        if self.done or self._too_old(stamp):
            return b""
        line = content + b"\n" if tag != b"P" else content
        # Like the kubelet: a time stands before a line, not before each part of it.
        if self._options.timestamps and self._is_new_line:
            line = stamp + b" " + line
        self._is_new_line = tag != b"P"
        if self._left is not None:
            line = line[: self._left]
            self._left -= len(line)
            self.done = self._left == 0
        return line

    def _too_old(self, stamp: bytes) -> bool:
        since = self._options.since
        if since is None:
            return False
        try:
            return clock.parse(stamp.decode()) < since.astimezone(UTC)
        except ValueError:
            return True


def tail_offset(file: BinaryIO, lines: int) -> int:
    """Return the offset of the last `lines` lines. Reads only as much of the file as necessary, from its end."""
    end = file.seek(0, io.SEEK_END)
    if lines <= 0:
        return end
    # The last line ends in a newline too, so one more is passed to reach the end of the line before the first wanted
    # one.
    wanted = lines + 1
    position = end
    while position > 0:
        size = min(BLOCK, position)
        position -= size
        file.seek(position)
        block = file.read(size)
        found = block.count(b"\n")
        if found < wanted:
            wanted -= found
            continue
        for _ in range(wanted - 1):
            block = block[: block.rindex(b"\n")]
        return position + block.rindex(b"\n") + 1
    return 0


async def read_log(
    path: Path, options: LogOptions, *, is_live: Callable[[], bool], pause: Callable[[], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """Yield the rendered log. With `follow`, it ends when the instance of the container has ended."""
    rendered = LogFilter(options)
    with path.open("rb") as file:
        file.seek(tail_offset(file, options.tail_lines) if options.tail_lines is not None else 0)
        rest = b""
        while not rendered.done:
            # Asked before the read: output that is written until the end must still be read.
            live = options.follow and is_live()
            data = file.read(BLOCK)
            if data:
                *lines, rest = (rest + data).split(b"\n")
                if out := b"".join(rendered.render(line) for line in lines):
                    yield out
            elif not live:
                return
            else:
                await pause()


def last_output(path: Path, *, lines: int, limit: int) -> str:
    """Return the end of a log, for `terminationMessagePolicy: FallbackToLogsOnError`."""
    options = LogFilter(LogOptions())
    try:
        with path.open("rb") as file:
            file.seek(tail_offset(file, lines))
            text = b"".join(options.render(line.removesuffix(b"\n")) for line in file)
    except OSError:
        return ""
    return text[-limit:].decode(errors="replace")
