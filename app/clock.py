"""The only module that reads the clock. All other code takes a `Clock` or a time as an argument."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of wall-clock time and of monotonic time."""

    def now(self) -> datetime:
        """Return the wall-clock time as an aware datetime in UTC, for records."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease, for deadlines and intervals."""
        ...


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
