"""Sums of usage by day, resource and use: exact integers, in amounts times milliseconds.

What has ended is one number for each day. What goes on grows with the time, so it is stored as a rate from a day on:
`amount` grows from the beginning of the day, less `behind`, which is what was not yet held then. A rate stays correct
without being written again, also over midnight.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from app.domain.usage.holds import JOBS, JobUse, UsePart
from app.domain.vocabulary import Use

DAY: Final = 86_400_000  # milliseconds

ONE_JOB: Final[Mapping[str, int]] = {JOBS: 1}


class Cell(NamedTuple):
    """A sum: the day as a number of days since 1970, in UTC, the resource, and the use."""

    day: int
    resource: str
    use: Use


class Rate(NamedTuple):
    """What goes on: `t` milliseconds after the day began, the sum is amount * t - behind."""

    amount: int
    behind: int


_STILL: Final = Rate(0, 0)
Sums: TypeAlias = Mapping[Cell, int]
Rates: TypeAlias = Mapping[Cell, Rate]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChange:
    """What a reconcile adds to the sums of what has ended.

    `rates` are those of the job after the reconcile; None if they have not changed.
    """

    ended: Sums = field(default_factory=dict)
    rates: Rates | None = None


NO_CHANGE: Final = UsageChange()


def add_ended(sums: dict[Cell, int], piece: UsePart, requests: Mapping[str, int]) -> None:
    """Add a piece that has ended to the sums of its days."""
    use, since, until = piece
    assert until is not None, "a piece that goes on has no sum"
    for day in range(since // DAY, until // DAY + 1):
        length = min(until, (day + 1) * DAY) - max(since, day * DAY)
        if length > 0:
            for resource, amount in requests.items():
                cell = Cell(day, resource, use)
                sums[cell] = sums.get(cell, 0) + amount * length


def add_rate(rates: dict[Cell, Rate], piece: UsePart, requests: Mapping[str, int]) -> None:
    """Add a piece of something that goes on. The piece itself may have ended: then its rate is taken back."""
    use, since, until = piece
    for at, sign in [(since, 1)] if until is None else [(since, 1), (until, -1)]:
        day, offset = divmod(at, DAY)
        for resource, amount in requests.items():
            cell = Cell(day, resource, use)
            before = rates.get(cell, _STILL)
            rates[cell] = Rate(before.amount + sign * amount, before.behind + sign * amount * offset)


def sum_rates(
    rates: Iterable[tuple[Cell, Rate]], first: int, last: int, now: int, *, by_day: bool = True
) -> dict[Cell, int]:
    """Return what the rates add up to at `now`, for each of the days from `first` to `last`.

    Unless `by_day`, all days are one sum, whose cell has the day `first`.
    """
    sums: dict[Cell, int] = {}
    last = min(last, now // DAY)
    for (begin, resource, use), (amount, behind) in rates:
        days = range(max(begin, first), last + 1)
        for day in days if by_day else days[:1]:
            until = min((day if by_day else last) * DAY + DAY, now)
            grown = amount * (until - day * DAY) - (behind if day == begin else 0)
            cell = Cell(day if by_day else first, resource, use)
            sums[cell] = sums.get(cell, 0) + grown
    # A process whose count of the time is behind that of the controller finds what has not begun yet.
    return {cell: total for cell, total in sums.items() if total > 0}


def with_ended(job: JobUse, sums: Sums) -> JobUse:
    """Return the use of a job to which the sums of its holds are added. How long it was queued is known already."""
    added = {resource: dict(uses) for resource, uses in job.ended.items()}
    for (_, resource, use), total in sums.items():
        if use is not Use.QUEUED:
            uses = added.setdefault(resource, {})
            uses[use] = uses.get(use, Decimal(0)) + total
    return replace(job, ended=added) if added != job.ended else job
