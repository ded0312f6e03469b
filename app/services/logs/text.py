"""The parts of a log as text. Without I/O."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from app.services.logs.selecting import LogLines
from app.services.logs.times import time_text
from app.services.logs.whole import LogPart, MissingPart

# Lines of a piece: each takes some microseconds.
_LINES: Final = 256


class TextLog:
    """Renders a log as text. What is missing has a line of its own."""

    def __init__(self, *, has_times: bool) -> None:
        self._has_times = has_times
        self._end: int | None = None  # of a line whose line break is not sent yet

    def render(self, part: LogPart | bytes) -> Iterator[bytes]:
        if isinstance(part, bytes):
            yield part
            return
        if self._end is not None and (isinstance(part, MissingPart) or part.start != self._end or not part.continues):
            yield b"\n"
        if isinstance(part, MissingPart):
            self._end = None
            yield f"{part.text}\n".encode()
            return
        self._end = None if part.text.endswith(b"\n") else part.start + len(part.text)
        if self._has_times:
            yield from render_lines(part, self._line)
        else:
            yield part.text

    @staticmethod
    def _line(part: LogLines, index: int, begin: int, end: int) -> bytes:
        text, time = part.text[begin:end], part.times[index]
        is_start = index or not part.continues
        return f"{time_text(time)} ".encode() + text if time and is_start else text


class LogBytes:
    """Renders exactly the bytes of a log, without a word on what is missing."""

    def render(self, part: LogPart | bytes) -> Iterator[bytes]:
        if not isinstance(part, MissingPart):
            yield part if isinstance(part, bytes) else part.text


def render_lines(part: LogLines, line: Callable[[LogLines, int, int, int], bytes]) -> Iterator[bytes]:
    """Yield the lines of a part in pieces that take about a millisecond each."""
    ends = list(accumulate(part.lengths))
    for first in range(0, len(ends), _LINES):
        last = min(first + _LINES, len(ends))
        yield b"".join(line(part, index, ends[index - 1] if index else 0, ends[index]) for index in range(first, last))
