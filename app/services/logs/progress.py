"""Each line of a log once, although the log is opened several times and then stored. Without I/O."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from app.services.logs.lines import LineSplitter, Piece, TimedLine, comparable_time, split_time
from app.services.logs.overlap import length_of_overlap

# A log that ends within the time of a line, or directly after it.
_CUT_TIME: Final = re.compile(rb"[\d:.TZ-]{1,30} ?")
# Times that are remembered. The lines of standard output and of standard error are not exactly in the order of their
# times: they differ by some microseconds, and so by a few lines.
_TIMES: Final = 64
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
        # How many lines were read with each of the last times. When the log is opened again, it repeats so many lines
        # with that time, and all lines with another time before `_repeated_before`.
        self._times: Counter[str] = Counter()
        self._repeated_before = ""
        self._has_forgotten = False
        self._repeats: Counter[str] = Counter()  # lines of the open log that are yet to be repeated
        # The last line, of which the first `_length` bytes were read. They are all of it if it is complete.
        self._last_time = ""
        self._length = 0
        self._is_complete = True
        # The line of the current piece, and how many of its bytes are repeated; None if all are.
        self._at = ""
        self._skip: int | None = 0

    @property
    def since(self) -> datetime | None:
        """The second from which the log is opened again; None before the first line."""
        first = min(self._times, default="")
        return datetime.fromisoformat(f"{first[:19]}+00:00") if first else None

    def begin(self) -> None:
        """Note that the log is opened, maybe again."""
        self._repeats = Counter(self._times)
        knows_all = self._from_start and not self._has_forgotten
        self._repeated_before = "" if knows_all else min(self._times, default="")

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
            self._skip = self._begin(comparable_time(self._at))
        if self._skip is None:
            return None
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        self._note(text[skipped:], is_end=piece.is_end)
        return TimedLine(self._at, text[skipped:]) if skipped < len(text) or not skipped else None

    def _begin(self, time: str) -> int | None:
        """Note the start of a line. Return how many of its first bytes were read before; None if all were."""
        if not time:
            return 0
        if self._repeats[time] or time < self._repeated_before:
            is_last = time == self._last_time and self._repeats[time] == 1
            if self._repeats[time]:
                self._repeats[time] -= 1
            return self._length if is_last and not self._is_complete else None
        self._times[time] += 1
        while len(self._times) > _TIMES:
            del self._times[next(iter(self._times))]
            self._has_forgotten = True
        self._last_time, self._length, self._is_complete = time, 0, False
        return 0

    def _note(self, text: bytes, *, is_end: bool) -> None:
        """Remember new text of a line."""
        if self._at:
            self._length += len(text)
            self._is_complete = is_end
        elif self._last_time:
            return  # the kubelet adds messages without a time, which the container has not written
        more = text + b"\n" if is_end else text
        self.read += len(more)
        self._text += more
        if len(self._text) > 2 * _REMEMBERED:
            del self._text[:-_REMEMBERED]
