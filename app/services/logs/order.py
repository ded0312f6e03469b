"""Merges the lines of several logs by their times. Without I/O."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from app.domain.plan import Rank
from app.services.logs.lines import comparable_time

_PLACE: Final = itemgetter(0)


class MergedLine(NamedTuple):
    """A line of the log of an attempt. `at` is empty if the cluster gave no time."""

    key: Rank
    attempt: int
    at: str
    text: bytes


class TimeMerge:
    """Merges lines by their times. The lines of one replica keep their order.

    A line without a time, such as each of a stored log, stays behind the line before it, and so does one with a time
    before that: the times of standard output and standard error differ a little from the order of the lines.
    """

    def __init__(self) -> None:
        # The lines of each open log that wait, with their places in time.
        self._waiting: dict[Rank, list[tuple[str, MergedLine]]] = {}
        self._last: dict[Rank, str] = {}
        self._rest: list[tuple[str, MergedLine]] = []  # of logs that have ended

    def open(self, key: Rank) -> None:
        """Wait for lines of this replica, until `close`."""
        self._waiting.setdefault(key, [])

    def push(self, key: Rank, lines: Sequence[MergedLine]) -> None:
        """Add the next lines of a replica."""
        time = self._last.get(key, "")
        for line in lines:
            time = max(time, comparable_time(line.at))
            self._waiting[key].append((time, line))
        self._last[key] = time

    def close(self, key: Rank) -> None:
        """Note that no line of this replica follows."""
        self._rest += self._waiting.pop(key)
        self._rest.sort(key=_PLACE)

    def missing(self) -> Sequence[Rank]:
        """Return the replicas whose next lines must be known before `take` can return more."""
        return [key for key, lines in self._waiting.items() if not lines]

    def take(self) -> Sequence[MergedLine]:
        """Return the lines that no later line of any replica can precede, in order, and forget them."""
        bound = min((lines[-1][0] if lines else "" for lines in self._waiting.values()), default=None)
        found: list[tuple[str, MergedLine]] = []
        for lines in (*self._waiting.values(), self._rest):
            count = len(lines) if bound is None else bisect_right(lines, bound, key=_PLACE)
            found += lines[:count]
            del lines[:count]
        found.sort(key=_PLACE)
        return [line for _, line in found]
