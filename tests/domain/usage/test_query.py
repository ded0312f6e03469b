"""A time is whole months and some days, which are added or taken back."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.domain.usage.query import Stretch, stretches

DAY = timedelta(1)


def days_of(stretch: Stretch) -> list[date]:
    return [stretch.first + DAY * number for number in range((stretch.last - stretch.first).days + 1)]


@given(st.dates(date(2023, 12, 1), date(2025, 3, 31)), st.dates(date(2023, 12, 1), date(2025, 3, 31)))
def test_the_stretches_have_each_day_once_and_no_other(one: date, other: date) -> None:
    first, last = min(one, other), max(one, other)
    months, parts = stretches(first, last)
    counts: dict[date, int] = {}
    if months is not None:
        assert months.first.day == months.last.day == 1
        following = (months.last + 31 * DAY).replace(day=1)
        counts = dict.fromkeys(days_of(Stretch(first=months.first, last=following - DAY)), 1)
    for part in parts:
        assert part.first <= part.last
        for day in days_of(part):
            counts[day] = counts.get(day, 0) + (-1 if part.is_subtracted else 1)
    assert {day for day, count in counts.items() if count} == set(days_of(Stretch(first=first, last=last)))
    assert set(counts.values()) <= {0, 1}
    assert sum(len(days_of(part)) for part in parts) <= 32


def test_the_first_and_the_last_days_of_all() -> None:
    for first, last in [(date.min, date(1, 3, 1)), (date(9998, 1, 5), date.max), (date.max, date.max)]:
        months, parts = stretches(first, last)
        assert months is not None or parts == [Stretch(first=first, last=last)]
