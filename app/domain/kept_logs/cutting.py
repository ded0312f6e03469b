"""Cuts the log of a container, as it comes from the cluster with times, into chunks.

The chunks of a log do not depend on the pieces in which it comes, unless the caller cuts earlier.
"""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from app.domain.kept_logs.repeats import NANOSECONDS, ReadPosition, RepeatFilter, second_of

TARGET: Final = 1024 * 1024
"""Bytes of text after which a chunk ends with its line."""
MOST_BYTES: Final = 2 * TARGET
"""Bytes of text of the largest chunk. A line that would exceed them continues in the next chunk."""
MOST_LINES: Final = 16 * 1024
"""Lines of the largest chunk, so that a log of empty lines needs little memory."""

# RFC 3339, in the time zone of the node.
_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")
_LONGEST_TIME: Final = len("2026-01-02T03:04:05.123456789+00:00 ")
# A log that ends within the time of a line.
_CUT_TIME: Final = re.compile(rb"[\d:.TZ+-]*")
_LINE_BYTES: Final = 4 + 8  # of the length and the time of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A part of a log, from the byte `start` on.

    Args:
        first_line: how many lines start before it.
        text: the bytes that the container wrote, with their line breaks.
        lengths: the bytes of each line, with its line break. The last line may have none.
        times: of each line, in nanoseconds since 1970.
        continues: whether the first line is the rest of the last line of the chunk before.
        follows_gap: whether lines before this chunk are lost.
        position: how far the log is read with this chunk.
    """

    start: int
    first_line: int
    text: bytes
    lengths: Sequence[int]
    times: Sequence[int]
    continues: bool = False
    follows_gap: bool = False
    position: ReadPosition

    @property
    def lines(self) -> int:
        """How many lines start in it."""
        return len(self.lengths) - self.continues

    @property
    def first_at(self) -> datetime:
        return time_of(min(self.times))

    @property
    def last_at(self) -> datetime:
        return time_of(max(self.times))


def time_of(nanoseconds: int) -> datetime:
    """Return the time in microseconds, which PostgreSQL stores."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)


class LogCutter:
    """Collects the new lines of a log until they are a chunk.

    Args:
        start: the number of bytes that are kept already.
        first_line: the number of lines that are kept already.
        position: what was read of the log before.
    """

    def __init__(self, start: int = 0, first_line: int = 0, position: ReadPosition | None = None) -> None:
        self._filter = RepeatFilter(from_start=True, position=position)
        self._start, self._first_line = start, first_line
        self._text = bytearray()
        self._lengths = array("I")
        self._times = array("q")
        self._continues = self._follows_gap = False
        # The line that is read now.
        self._rest = b""  # a part of its time
        self._time = 0
        self._at_start = True
        self._skip: int | None = None  # bytes of it that are repeated; None for all
        self._resumes = False  # whether a part of it was read before

    @property
    def size(self) -> int:
        """The bytes in memory of what waits for the end of its chunk; 0 without text."""
        return len(self._text) + _LINE_BYTES * len(self._lengths)

    @property
    def since(self) -> datetime | None:
        """The second from which the log is opened again; None before the first line."""
        return self._filter.since

    @property
    def misses_end(self) -> bool:
        """Whether the log, as far as it was read since it was opened, does not have the last line any more."""
        return self._filter.misses_last_line

    def begin(self) -> None:
        """Note that the log is opened, maybe again."""
        self._filter.begin()
        self._rest, self._at_start, self._skip = b"", True, None

    def feed(self, received: bytes) -> list[LogChunk]:
        """Return the chunks that the bytes complete."""
        data, self._rest = self._rest + received, b""
        chunks: list[LogChunk] = []
        offset = 0
        while offset < len(data):
            if self._at_start:
                offset = self._start_line(data, offset, chunks)
                if self._rest:
                    break
            end = data.find(b"\n", offset) + 1
            self._add(data, offset, end or len(data), chunks)
            offset, self._at_start = end or len(data), bool(end)
        return chunks

    @property
    def end_of_line(self) -> ReadPosition:
        """How far the log is read, as if its last line were read to its end."""
        return replace(self._filter.position, is_complete=True)

    def cut(self) -> LogChunk | None:
        """End the chunk here. Return None if it has no text."""
        if not self._text:
            return None
        chunk = LogChunk(
            start=self._start,
            first_line=self._first_line,
            text=bytes(self._text),
            lengths=self._lengths,
            times=self._times,
            continues=self._continues,
            follows_gap=self._follows_gap,
            position=self._filter.position,
        )
        self._start += len(chunk.text)
        self._first_line += chunk.lines
        self._follows_gap = False
        self._text, self._lengths, self._times = bytearray(), array("I"), array("q")
        return chunk

    def _start_line(self, data: bytes, offset: int, chunks: list[LogChunk]) -> int:
        """Read the time of a line. Return the offset of its text; if its time is cut off, keep that in `_rest`."""
        match = _TIME.match(data, offset)
        if match is None:
            if len(data) - offset < _LONGEST_TIME and _CUT_TIME.fullmatch(data, offset):
                self._rest = data[offset:]
            # The kubelet adds messages without a time, which the container has not written.
            self._skip = None
            return offset
        time = self._nanoseconds(match)
        if self._filter.misses_lines_before(time):
            self._end_chunk(chunks)  # its position must not include the line after the gap
            self._follows_gap = True
        self._time, self._skip = time, self._filter.start_line(time)
        self._resumes = bool(self._skip)
        return match.end()

    @staticmethod
    def _nanoseconds(match: re.Match[bytes]) -> int:
        second, fraction, zone = match.groups()
        offset = b"+00:00" if zone == b"Z" else zone
        return second_of((second + offset).decode()) * NANOSECONDS + int((fraction or b"").ljust(9, b"0"))

    def _add(self, data: bytes, begin: int, end: int, chunks: list[LogChunk]) -> None:
        """Add a part of the current line, without the bytes that are repeated."""
        if self._skip is None:
            return
        skipped = min(self._skip, end - begin)
        self._skip -= skipped
        begin += skipped
        while begin < end:
            part = data[begin : min(end, begin + MOST_BYTES - len(self._text))]
            begin += len(part)
            self._append(part)
            is_end = part.endswith(b"\n")
            self._filter.add(len(part), is_end=is_end)
            is_full = is_end and (len(self._text) >= TARGET or len(self._lengths) >= MOST_LINES)
            if is_full or len(self._text) == MOST_BYTES:
                self._end_chunk(chunks)

    def _append(self, part: bytes) -> None:
        if self._lengths and self._resumes:
            self._lengths[-1] += len(part)
        else:
            if not self._lengths:
                self._continues = self._resumes
            self._lengths.append(len(part))
            self._times.append(self._time)
        self._text += part
        self._resumes = True

    def _end_chunk(self, chunks: list[LogChunk]) -> None:
        if (chunk := self.cut()) is not None:
            chunks.append(chunk)
