"""The only module that reads the clock. All other code takes a `Clock` or a time as an argument."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from typing_extensions import override


class Clock(Protocol):
    """A source of times for records and deadlines, and of monotonic time."""

    def now(self) -> datetime:
        """Return the time as an aware datetime in UTC, for records and for deadlines that are stored."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease, for deadlines and intervals of this process."""
        ...


class SystemClock:
    """The clock of the operating system. `now` follows each step of it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class InstallationClock(SystemClock):
    """The time of the installation, which this process counts by its monotonic clock.

    It begins with the time of the operating system. `app.db.installation.timekeeper` shifts it to the time that all
    processes of the installation share.
    """

    def __init__(self) -> None:
        self._origin = self.host() - timedelta(seconds=self.monotonic())

    @override
    def now(self) -> datetime:
        return self._origin + timedelta(seconds=self.monotonic())

    def host(self) -> datetime:
        """Return the time of the operating system."""
        return super().now()

    def shift(self, seconds: float) -> None:
        """Let `now` return later times by `seconds`."""
        self._origin += timedelta(seconds=seconds)
