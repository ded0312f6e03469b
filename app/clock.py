"""The only reader of the clock. Everything else takes a `Clock`, or `now` itself, as an argument."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, and how much of it has passed."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC: for records that people read."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards: for deadlines and intervals."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
