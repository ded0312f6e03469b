"""The time of the installation: the clock of the database without its steps.

    time of the installation = clock of the database + `ahead`

Every process counts this time by its monotonic clock and compares it with readings of the database. A difference that
the drift of two clocks explains is followed. A larger one is a step of the database's clock, or a pause of this process
that its monotonic clock did not count. The two cannot be told apart, so the process that holds the controller's lease
keeps the earlier of the two times: no deadline passes too early. It never goes back behind the time that a holder of
the lease has recorded.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

# Seconds that no deadline of jobgate notices. Leap seconds are smaller.
UNNOTICED: Final = 1.0
# The relative drift of two clocks: Linux corrects the rate of a clock by at most 500 ppm.
DRIFT: Final = 0.001
# The rate at which the time of the installation returns to the clock of the database: an hour takes four days. NTP
# daemons correct by up to 8 %, and no deadline of jobgate notices 1 %.
CONVERGENCE: Final = 0.01
# Seconds for which a process without the lease waits for the holder to correct the time, before it follows a step. They
# exceed the expiry of a lease and the takeover.
PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the database returned: its clock, `ahead` in seconds, and the last time that a holder has recorded."""

    at: datetime
    ahead: float
    reached_at: datetime | None

    @property
    def time(self) -> datetime:
        return self.at + timedelta(seconds=self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The time as the process counted it before and after the reading, and seconds since its last agreement with one.

    The database read its clock at some moment between the two.
    """

    before: datetime
    after: datetime
    since: float

    @property
    def middle(self) -> datetime:
        return self.before + (self.after - self.before) / 2

    def behind(self, time: datetime) -> float:
        """Return the least number of seconds by which the process is behind the time; negative if it is ahead."""
        return (time - min(max(time, self.before), self.after)) / timedelta(seconds=1)

    def agrees_with(self, time: datetime) -> bool:
        return abs(self.behind(time)) <= UNNOTICED + DRIFT * self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """How the holder of the lease corrects the time: it shifts its own count, and stores the rest. Numbers are seconds.

    `step` is the step that the database's clock seems to have made; 0 if there was none.
    """

    shift: float
    ahead: float
    reached_at: datetime
    step: float


def unrecorded_time(reading: Reading) -> timedelta:
    """Return how much time seems to have passed since a holder of the lease has recorded one.

    It is short while a controller runs. Otherwise no controller has run, or the clock of the database has made a step.
    """
    return timedelta() if reading.reached_at is None else max(reading.time - reading.reached_at, timedelta())


def first_time(reading: Reading) -> datetime:
    """Return the time with which a process starts that has counted none."""
    return reading.time if reading.reached_at is None else max(reading.time, reading.reached_at)


def correction(reading: Reading, counted: Counted) -> Correction:
    """Return what the holder of the lease does after a reading."""
    if counted.agrees_with(reading.time):
        back = min(abs(reading.ahead), CONVERGENCE * counted.since)
        ahead = reading.ahead - back if reading.ahead > 0 else reading.ahead + back
        reached_at = reading.at + timedelta(seconds=ahead)
        return Correction(shift=counted.behind(reading.time), ahead=ahead, reached_at=reached_at, step=0.0)
    earlier = min(reading.time, counted.middle)
    time = earlier if reading.reached_at is None else max(earlier, reading.reached_at)
    return Correction(
        shift=(time - counted.middle) / timedelta(seconds=1),
        ahead=(time - reading.at) / timedelta(seconds=1),
        reached_at=time,
        step=(reading.time - time) / timedelta(seconds=1),
    )


def shift_of_follower(reading: Reading, counted: Counted, *, differs_for: float) -> float | None:
    """Return the seconds by which a process without the lease shifts its count; None if it waits for the holder.

    `differs_for` is how long its readings have differed by a step.
    """
    if counted.agrees_with(reading.time) or differs_for > PATIENCE:
        return counted.behind(reading.time)
    return None


def in_words(seconds: float) -> str:
    """Return how far a clock is from another one, for example `3600 s ahead of`."""
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"
