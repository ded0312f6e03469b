"""Splits logs into lines, and recognizes the lines that repeat when a log is opened again. Without I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

MAX_LINE: Final = 64 * 1024
"""Bytes. A longer line becomes several, so that a container that writes no line break needs little memory."""
# RFC 3339 in UTC, with up to nine digits of the second.
_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z ")


class TimedLine(NamedTuple):
    """A line without its line break. `at` is empty if the cluster gave no time."""

    at: str
    text: bytes


class LineSplitter:
    """Splits a log that comes in pieces of any size into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that the piece completes."""
        *lines, rest = (self._rest + piece).split(b"\n")
        while len(rest) > MAX_LINE:
            lines.append(rest[:MAX_LINE])
            rest = rest[MAX_LINE:]
        self._rest = rest
        return lines

    def end(self) -> list[bytes]:
        """Return what follows the last line break."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def timed(line: bytes) -> TimedLine:
    """Split a line of a live log into the time from the kubelet and the text."""
    if (match := _TIME.match(line)) is None:
        return TimedLine("", line)
    return TimedLine(line[: match.end() - 1].decode(), line[match.end() :])


@dataclass(slots=True)
class LogProgress:
    """How far a log has been read. A log that is opened again from `since` repeats lines, which are recognized here."""

    _last: str = ""  # the time of the last line
    _at_last: int = 0  # lines with that time; several can have the same
    _text: bytes | None = None
    _opened_at: str = ""
    _repeated: int = 0

    @property
    def since(self) -> datetime | None:
        """The whole second of the last line; None before the first one."""
        return datetime.fromisoformat(f"{self._last[:19]}+00:00") if self._last else None

    def opened(self) -> None:
        """Note that the log is opened, maybe again."""
        self._opened_at, self._repeated = self._last, self._at_last

    def new_lines(self, lines: Sequence[bytes]) -> list[TimedLine]:
        """Return the lines of a live log that were not read before it was opened again."""
        return [line for line in map(timed, lines) if self._is_new(line)]

    def new_stored_lines(self, lines: Sequence[bytes]) -> list[TimedLine]:
        """Return the lines of a stored log, which have no times, after the last one that was read while it was live."""
        seen = 0
        if self._text is not None and self._text in lines:
            seen = len(lines) - list(reversed(lines)).index(self._text)
        return [TimedLine("", line) for line in lines[seen:]]

    def _is_new(self, line: TimedLine) -> bool:
        at = _comparable(line.at)
        if at and at <= self._opened_at and (at < self._opened_at or self._repeated):
            self._repeated -= at == self._opened_at
            return False
        if at:
            self._at_last = self._at_last + 1 if at == self._last else 1
            self._last = at
        self._text = line.text
        return True


def _comparable(at: str) -> str:
    """Return the time with nine digits of the second, so that times are in the order of their texts."""
    second, _, fraction = at.removesuffix("Z").partition(".")
    return f"{second}.{fraction.ljust(9, '0')}" if at else ""
