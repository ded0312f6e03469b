"""Lines of logs with the times of the kubelet. Without I/O."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MAX_LINE: Final = 64 * 1024
"""Bytes. A longer line becomes several, so that a container that writes no line break needs little memory."""
# RFC 3339 in UTC, with up to nine digits of the second.
_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z ")


class Piece(NamedTuple):
    """A line without its line break, or a part of a long one."""

    text: bytes
    is_start: bool = True
    is_end: bool = True


class TimedLine(NamedTuple):
    """A line without its line break. `at` is empty if the cluster gave no time."""

    at: str
    text: bytes


class LineSplitter:
    """Splits a log into lines and parts of long ones, which do not depend on the pieces in which the log comes."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_start = True

    def feed(self, received: bytes) -> list[Piece]:
        """Return the lines, and the parts of a long line, that the bytes complete."""
        *lines, rest = (self._rest + received).split(b"\n")
        found: list[Piece] = []
        for line in lines:
            *parts, last = self._parts(line)
            found += [*parts, Piece(last.text, last.is_start)]
            self._is_start = True
        *parts, last = self._parts(rest)
        self._rest = last.text
        return [*found, *parts]

    def end(self) -> list[Piece]:
        """Return what follows the last line break."""
        rest, self._rest = self._rest, b""
        return [Piece(rest, self._is_start, is_end=False)] if rest else []

    def _parts(self, line: bytes) -> Iterator[Piece]:
        """Yield the parts of a line; the last one may be empty."""
        for begin in range(0, max(1, len(line)), MAX_LINE):
            if begin:
                self._is_start = False
            yield Piece(line[begin : begin + MAX_LINE], self._is_start, is_end=False)


def split_time(line: bytes) -> TimedLine:
    """Split a line of a live log into the time from the kubelet and the text."""
    if (match := _TIME.match(line)) is None:
        return TimedLine("", line)
    return TimedLine(line[: match.end() - 1].decode(), line[match.end() :])


def comparable_time(at: str) -> str:
    """Return the time with nine digits of the second, so that times are in the order of their texts."""
    second, _, fraction = at.removesuffix("Z").partition(".")
    return f"{second}.{fraction.ljust(9, '0')}" if at else ""
