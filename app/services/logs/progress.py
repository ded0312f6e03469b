"""Each line of a log once, although the log is opened several times and then stored. Without I/O."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from app.domain.kept_logs.repeats import NANOSECONDS, RepeatFilter, second_of
from app.services.logs.lines import LineSplitter, Piece, TimedLine, comparable_time, split_time
from app.services.logs.overlap import length_of_overlap

# A log that ends within the time of a line, or directly after it.
_CUT_TIME: Final = re.compile(rb"[\d:.TZ-]{1,30} ?")
# Bytes of the end of the log that are remembered: as many as are stored by default.
_REMEMBERED: Final = 64 * 1024


class LogProgress:
    """How far a log has been read. A log that is opened again from `since` repeats lines, which are recognized here.

    Args:
        from_start: whether the log is read from its first line on.
    """

    def __init__(self, *, from_start: bool) -> None:
        self.read = 0
        """The bytes that were read, without repeated ones."""
        self._from_start = from_start
        self._text = bytearray()  # the last of these bytes
        self._repeats = RepeatFilter(from_start=from_start)
        # The line of the current piece, and how many of its bytes are repeated; None if all are.
        self._at = ""
        self._skip: int | None = 0

    @property
    def since(self) -> datetime | None:
        """The second from which the log is opened again; None before the first line."""
        return self._repeats.since

    def begin(self) -> None:
        """Note that the log is opened, maybe again."""
        self._repeats.begin()

    def new_lines(self, pieces: Sequence[Piece]) -> list[TimedLine]:
        """Return the lines of a live log that were not read before it was opened again.

        A line that was read in part is continued: its rest is a line of the result.
        """
        return [line for piece in pieces if (line := self._new(piece)) is not None]

    def new_stored_lines(self, stored: bytes, *, is_whole: bool) -> list[TimedLine]:
        """Return the lines of the stored log, which have no times, after what was read while it was live.

        `is_whole` says whether the stored log begins with the first line of the log.
        """
        read = bytes(self._text)
        from_start = self._from_start and self.read == len(read)
        known = length_of_overlap(read, stored, from_start=from_start, is_whole=is_whole)
        rest = stored[known:]
        if known and not read.endswith(b"\n"):
            rest = rest.removeprefix(b"\n")  # it ends the line that was read last
        splitter = LineSplitter()
        return [TimedLine("", piece.text) for piece in (*splitter.feed(rest), *splitter.end())]

    def _new(self, piece: Piece) -> TimedLine | None:
        text = piece.text
        if piece.is_start:
            if not piece.is_end and _CUT_TIME.fullmatch(text):
                return None
            self._at, text = split_time(text)
            self._skip = self._repeats.start_line(_nanoseconds(self._at)) if self._at else 0
        if self._skip is None:
            return None
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        self._note(text[skipped:], is_end=piece.is_end)
        return TimedLine(self._at, text[skipped:]) if skipped < len(text) or not skipped else None

    def _note(self, text: bytes, *, is_end: bool) -> None:
        """Remember new text of a line."""
        if self._at:
            self._repeats.add(len(text), is_end=is_end)
        elif self._repeats.last_time:
            return  # the kubelet adds messages without a time, which the container has not written
        more = text + b"\n" if is_end else text
        self.read += len(more)
        self._text += more
        if len(self._text) > 2 * _REMEMBERED:
            del self._text[:-_REMEMBERED]


def _nanoseconds(at: str) -> int:
    second, _, fraction = comparable_time(at).partition(".")
    return second_of(f"{second}+00:00") * NANOSECONDS + int(fraction)
