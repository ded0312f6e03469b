"""Text of logs: prefixes of replicas, and the times by which a log continues after a lost connection. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# The time that the cluster puts before each line: RFC 3339 in UTC, with up to nine digits of the second.
_TIME: Final = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z (.*)$", re.DOTALL)
_CUT_OFF: Final = "[jobgate] the log is cut off here"
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
        return f"{self.task}[{self.rank}]" + (f" #{self.attempt}" if self.attempt > 1 else "")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a live log. `time` orders lines; it is empty if the cluster gave none."""

    time: str
    text: str


def parsed(line: str) -> Line:
    """Return a line without its time. Times of different precision are made comparable."""
    if (match := _TIME.match(line)) is None:
        return Line("", line)
    second, fraction, text = match.groups()
    return Line(f"{second}.{(fraction or '').ljust(9, '0')}Z", text)


def is_cut_off(line: Line) -> bool:
    """Return whether the gateway, not the container, wrote the line, because it had to end the log early."""
    return not line.time and (not line.text or line.text.startswith(_CUT_OFF))


def unseen(stored: Sequence[str], last: str) -> Sequence[str]:
    """Return the lines of a stored log after the last one that was printed while it was live."""
    if not last or last not in stored:
        return stored
    return stored[len(stored) - list(reversed(stored)).index(last) :]


def colour(source: Source, tasks: Sequence[str]) -> str:
    """Return a colour that neighbours do not share. A replica keeps it in all attempts."""
    place = tasks.index(source.task) if source.task in tasks else 0
    return _COLOURS[(source.rank + 3 * place) % len(_COLOURS)]


def prefix(source: Source, width: int) -> str:
    """Return what stands before the lines of a replica, padded so that lines are aligned."""
    return f"{source.label:<{width}} | "
