"""Which lines of a chunk of a log a request selects: by bytes, number, time and a pattern. Without I/O."""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from app.services.logs.search import LinePattern

SLICE: Final = 64 * 1024
"""Bytes of text that are searched or sent at once. A longer line is searched and sent in parts of this size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSelection:
    """Which lines are selected.

    Args:
        begin: the first byte of the log.
        end: the byte before which the selection ends; None for no bound.
        is_exact: whether these bytes are selected. Otherwise it is the lines that begin in them.
        first_line: the number of the first line, from 0.
        since: nanoseconds since 1970. Earlier lines are not selected; those without a time always are.
        until: nanoseconds since 1970. Only earlier lines are selected.
        pattern: only lines that contain a match.
    """

    begin: int = 0
    end: int | None = None
    is_exact: bool = False
    first_line: int = 0
    since: int | None = None
    until: int | None = None
    pattern: LinePattern | None = None

    @property
    def has_times(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def is_everything(self) -> bool:
        """Whether all lines are selected."""
        bounds = self.begin or self.first_line or self.end is not None
        return not (bounds or self.has_times or self.pattern is not None)

    def includes(self, time: int) -> bool:
        """Return whether a line of this time is selected; 0 stands for an unknown time."""
        return not time or self.can_include(time, time)

    def can_include(self, first: int | None, last: int | None) -> bool:
        """Return whether lines between these times can be selected; None stands for an unknown time."""
        is_early = self.since is not None and last is not None and last < self.since
        is_late = self.until is not None and first is not None and first >= self.until
        return not (is_early or is_late)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """A part of a log: its text, and the length and time of each line.

    Args:
        start: its first byte, from the beginning of the log.
        first_line: how many lines start before it.
        times: in nanoseconds since 1970; 0 stands for an unknown time.
        continues: whether the first line is the rest of a line that begins before.
    """

    start: int
    first_line: int
    text: bytes
    lengths: Sequence[int]
    times: Sequence[int]
    continues: bool = False

    @property
    def lines(self) -> int:
        """How many lines start in it."""
        return len(self.lengths) - self.continues


class ChunkLines:
    """The lines of a chunk, and where they are in its text."""

    def __init__(self, chunk: LogLines) -> None:
        self.chunk = chunk
        self._ends = array("I", accumulate(chunk.lengths))

    @property
    def end(self) -> int:
        """The byte after it, from the beginning of the log."""
        return self.chunk.start + len(self.chunk.text)

    @property
    def size(self) -> int:
        """Bytes of memory that it takes, which for short lines is much more than its text."""
        return sum(map(sys.getsizeof, (self.chunk.text, self.chunk.lengths, self.chunk.times, self._ends)))

    def spans(self, selection: LineSelection) -> list[tuple[int, int]]:
        """Return what a selection includes, apart from its pattern: the places of parts of at most SLICE bytes of text.

        Parts end with lines, except for those of a line that is longer.
        """
        found: list[tuple[int, int]] = []
        for lines in self._ranges(selection):
            begin, end = self._begin(lines.start), self._begin(lines.stop)
            if selection.is_exact:
                begin = max(begin, selection.begin - self.chunk.start)
                end = end if selection.end is None else min(end, selection.end - self.chunk.start)
            found += self._parts(begin, end)
        return found

    def select(self, selection: LineSelection) -> list[LogLines]:
        """Return the parts of `spans`."""
        return [self.part(begin, end) for begin, end in self.spans(selection)]

    def find_matches(self, pattern: LinePattern) -> list[LogLines]:
        """Return the lines of this chunk, which has few, that contain a match."""
        text = self.chunk.text
        found: list[int] = []
        begin = 0
        while begin < len(text) and (offset := pattern.find(text, begin)) is not None and offset < len(text):
            found.append(bisect_right(self._ends, offset))
            begin = self._ends[found[-1]]
        return [self.part(self._begin(lines.start), self._begin(lines.stop)) for lines in _runs(found)]

    def part(self, begin: int, end: int) -> LogLines:
        """Return the part of the chunk with this part of its text, which does not keep the chunk in memory."""
        chunk = self.chunk
        first, last = bisect_right(self._ends, begin), bisect_left(self._ends, end) + 1
        ends = [begin, *self._ends[first : last - 1], end]
        continues = begin != self._begin(first) or (first == 0 and chunk.continues)
        return LogLines(
            start=chunk.start + begin,
            first_line=chunk.first_line - chunk.continues + first + continues,
            text=chunk.text[begin:end],
            lengths=array("I", (stop - start for start, stop in pairwise(ends))),
            times=chunk.times[first:last],
            continues=continues,
        )

    def _ranges(self, selection: LineSelection) -> list[range]:
        """Return the lines of a selection as ranges of indexes."""
        chunk = self.chunk
        first = max(0, selection.first_line - (chunk.first_line - chunk.continues))
        last = len(self._ends)
        if selection.is_exact:
            first = max(first, bisect_right(self._ends, max(0, selection.begin - chunk.start)))
        else:
            first = max(first, self._line_from(selection.begin))
        if selection.end is not None:
            last = self._line_from(selection.end)
        if not selection.has_times:
            return [range(first, last)] if first < last else []
        return _runs([index for index in range(first, last) if selection.includes(chunk.times[index])])

    def _line_from(self, byte: int) -> int:
        """Return the index of the first line that begins at this byte of the log or later."""
        offset = byte - self.chunk.start
        return 0 if offset <= 0 else min(1 + bisect_left(self._ends, offset), len(self._ends))

    def _begin(self, index: int) -> int:
        return self._ends[index - 1] if index else 0

    def _parts(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        while begin < end:
            stop = min(begin + SLICE, end)
            if stop < end:
                whole = self._begin(bisect_right(self._ends, stop))
                stop = whole if whole > begin else stop
            yield begin, stop
            begin = stop


def _runs(numbers: Sequence[int]) -> list[range]:
    """Return ascending numbers as ranges of consecutive ones."""
    found: list[range] = []
    for number in numbers:
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


EVERYTHING: Final = LineSelection()
