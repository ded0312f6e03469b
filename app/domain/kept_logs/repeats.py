"""Recognizes the lines that a log repeats when it is opened again, and notes when lines are missing there."""

from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

NANOSECONDS: Final = 1_000_000_000
# Times that are remembered. The lines of standard output and of standard error are not exactly in the order of their
# times: they differ by some microseconds, and so by a few lines.
_TIMES: Final = 64


@lru_cache(maxsize=1024)
def second_of(text: str) -> int:
    """Return the seconds since 1970 of a time in RFC 3339 without fractions, such as 2026-01-02T03:04:05+00:00."""
    return int(datetime.fromisoformat(text).timestamp())


class ReadPosition(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How far a log has been read. Times are in nanoseconds since 1970.

    Args:
        times: how many lines were read with each of the last times, in the order in which the times came first.
        has_forgotten: whether there were earlier times.
        last_time: that of the last line.
        length: how many bytes of the last line were read.
        is_complete: whether these are all of it.
    """

    times: tuple[tuple[int, int], ...] = ()
    has_forgotten: bool = False
    last_time: int = 0
    length: int = 0
    is_complete: bool = True

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, stored: bytes | None) -> "ReadPosition":
        return cls() if stored is None else msgspec.msgpack.decode(stored, type=cls)


class RepeatFilter:
    """Lets each line of a log through once, although the log is opened several times.

    A log can be opened again only from a whole second (`since`), so it repeats lines.

    Args:
        from_start: whether the log is read from its first line on.
        position: what was read before, maybe by another process.
    """

    def __init__(self, *, from_start: bool, position: ReadPosition | None = None) -> None:
        position = position or ReadPosition()
        self._from_start = from_start
        # When the log is opened again, it repeats so many lines with each time, and all lines with another time before
        # `_repeated_before`.
        self._times = Counter(dict(position.times))
        self._repeated_before = 0
        self._has_forgotten = position.has_forgotten
        self._repeats: Counter[int] = Counter()  # lines of the open log that are yet to be repeated
        self._last_time = position.last_time
        self._length = position.length
        self._is_complete = position.is_complete
        self._awaits_last = False

    @property
    def position(self) -> ReadPosition:
        return ReadPosition(
            times=tuple(self._times.items()),
            has_forgotten=self._has_forgotten,
            last_time=self._last_time,
            length=self._length,
            is_complete=self._is_complete,
        )

    @property
    def last_time(self) -> int:
        """The time of the last line, or 0 before the first one."""
        return self._last_time

    @property
    def since(self) -> datetime | None:
        """The second from which the log is opened again; None before the first line."""
        first = min(self._times, default=0)
        return datetime.fromtimestamp(first // NANOSECONDS, UTC) if first else None

    def begin(self) -> None:
        """Note that the log is opened, maybe again."""
        self._repeats = Counter(self._times)
        knows_all = self._from_start and not self._has_forgotten
        self._repeated_before = 0 if knows_all else min(self._times, default=0)
        self._awaits_last = bool(self._times)

    @property
    def misses_last_line(self) -> bool:
        """Whether the log was opened again and has not repeated the last line, so that it has lost it."""
        return self._awaits_last

    def misses_lines_before(self, time: int) -> bool:
        """Return whether a line of this time, which comes next, follows lines that the log does not have any more.

        A log that is opened again repeats the last line that was read, if it still has it.
        """
        return self.misses_last_line and not self._is_repeated(time)

    def start_line(self, time: int) -> int | None:
        """Note the start of a line. Return how many of its first bytes were read before; None if all were."""
        if self._is_repeated(time):
            return self._repeat(time)
        self._awaits_last = False
        self._times[time] += 1
        while len(self._times) > _TIMES:
            del self._times[next(iter(self._times))]
            self._has_forgotten = True
        self._last_time, self._length, self._is_complete = time, 0, False
        return 0

    def add(self, length: int, *, is_end: bool) -> None:
        """Note new bytes of the line that started last."""
        self._length += length
        self._is_complete = is_end

    def _is_repeated(self, time: int) -> bool:
        return self._repeats[time] > 0 or time < self._repeated_before

    def _repeat(self, time: int) -> int | None:
        is_last = time == self._last_time and self._repeats[time] == 1
        if self._repeats[time]:
            self._repeats[time] -= 1
        if is_last:
            self._awaits_last = False
        return self._length if is_last and not self._is_complete else None
