"""Text of logs: prefixes of replicas, and the times by which a log continues after a lost connection. Pure."""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jobgate.cli.rendering.visible import visible_line

# The time that the cluster puts before each line: RFC 3339 in UTC, with up to nine digits of the second.
_TIME: Final = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z (.*)$", re.DOTALL)
_CUT_OFF: Final = "[jobgate] the log is cut off here"
# Lines by which a stored log continues the live one: as many as the gateway stores.
_REMEMBERED: Final = 5000
_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Source:
    """One attempt of a replica, which has a log of its own."""

    task: str
    rank: int
    attempt: int

    @property
    def label(self) -> str:
        """The replica, and its attempt after a restart."""
        return self._replica + (f" #{self.attempt}" if self.attempt > 1 else "")

    @property
    def _replica(self) -> str:
        return f"{self.task}[{self.rank}]"

    def about(self, message: str) -> str:
        """Return a message of the gateway about this log. Some of these name the replica already."""
        return f"{self.label}: {message.removeprefix(f'{self._replica}: ')}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a live log. `time` orders lines; it is empty if the cluster gave none."""

    time: str
    text: str


def parse(line: str) -> Line:
    """Return a line without its time. Times of different precision are made comparable."""
    if (match := _TIME.match(line)) is None:
        return Line("", line)
    second, fraction, text = match.groups()
    return Line(f"{second}.{(fraction or '').ljust(9, '0')}Z", text)


def is_cut_off(line: Line) -> bool:
    """Return whether the gateway, not the container, wrote the line, because it had to end the log early."""
    return not line.time and (not line.text or line.text.startswith(_CUT_OFF))


class LogPosition:
    """How far a log was printed. A log that is opened again repeats lines, which are recognized here.

    Args:
        from_start: whether the log is printed from its first line on.
    """

    def __init__(self, *, from_start: bool) -> None:
        self._from_start = from_start
        self._last = ""  # the time of the last line
        self._at_last = 0  # lines with that time; several can have the same
        self._opened_at = ""
        self._repeated = 0
        self._is_new = True  # whether the last line was printed now
        self._texts: deque[str] = deque(maxlen=_REMEMBERED)

    @property
    def since(self) -> datetime | None:
        """The time of the last line, in microseconds and not after it; None if no line had a time."""
        return datetime.fromisoformat(f"{self._last[:26]}+00:00") if self._last else None

    def opened(self) -> None:
        """Note that the log is opened, maybe again."""
        self._opened_at, self._repeated = self._last, self._at_last

    def passes(self, line: Line) -> bool:
        """Return whether a line of a live log was not printed before."""
        time = line.time
        if time:
            self._is_new = time > self._opened_at or (time == self._opened_at and not self._repeated)
        # A line without a time belongs to the line before it.
        if not self._is_new:
            self._repeated -= time == self._opened_at
            return False
        if time:
            self._at_last = self._at_last + 1 if time == self._last else 1
            self._last = time
        self._note(line.text)
        return True

    def _note(self, text: str) -> None:
        self._from_start = self._from_start and len(self._texts) < _REMEMBERED
        self._texts.append(text)

    def unseen(self, stored: Sequence[str], *, is_whole: bool) -> Sequence[str]:
        """Return the lines of the stored log after those that were printed while it was live.

        A log that repeats itself can continue at several places. It then continues after the longest text in common, at
        the earliest place, so that no line is lost.
        """
        printed = list(self._texts)
        if self._from_start and is_whole and _begins(stored, printed):
            return stored[len(printed) :]
        if not self._from_start:
            for begin in range(len(stored) - len(printed) + 1 if printed else 0):
                if _begins(stored[begin:], printed):
                    return stored[begin + len(printed) :]
        # The stored log begins after the first line that was printed. Its own first line may be the end of one.
        for begin in range(1 if self._from_start else 0, len(printed)):
            if stored and printed[begin].endswith(stored[0]) and _begins(stored[1:], printed[begin + 1 :]):
                return stored[len(printed) - begin :]
        return stored


def _begins(lines: Sequence[str], beginning: Sequence[str]) -> bool:
    return list(lines[: len(beginning)]) == list(beginning)


def colour(source: Source, tasks: Sequence[str]) -> str:
    """Return a colour that neighbours do not share. A replica keeps it in all attempts."""
    place = tasks.index(source.task) if source.task in tasks else 0
    return _COLOURS[(source.rank + 3 * place) % len(_COLOURS)]


def prefix(source: Source, width: int) -> str:
    """Return what stands before the lines of a replica, padded so that lines are aligned."""
    return f"{visible_line(source.label):<{width}} | "
