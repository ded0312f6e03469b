"""Sums and rates by day agree with each other, and rows of answers with them."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.usage.holds import UsePart
from app.domain.usage.query import UsageRow, collect, is_dimension
from app.domain.usage.sums import DAY, Cell, Rate, add_ended, add_rate, sum_rates
from app.domain.vocabulary import Use

TIMES = st.integers(0, 4 * DAY)
PIECES = st.lists(st.tuples(TIMES, TIMES, st.sampled_from(Use), st.integers(1, 2**70)), max_size=6)


@given(PIECES, TIMES)
def test_what_goes_on_comes_to_what_it_adds_when_it_ends(found: list[tuple[int, int, Use, int]], now: int) -> None:
    """With rates that are taken back at the end of their piece, as those of an attempt that waited are."""
    sums: dict[Cell, int] = {}
    rates: dict[Cell, Rate] = {}
    for one, other, use, amount in found:
        since, until = sorted((min(one, now), min(other, now)))
        add_ended(sums, UsePart(use, since, until), {"cpu": amount})
        add_rate(rates, UsePart(use, since, until if until < now else None), {"cpu": amount})
    assert sum_rates(rates.items(), 0, 10, now) == sums
    first, last = 1, 2
    assert sum_rates(rates.items(), first, last, now) == {
        cell: total for cell, total in sums.items() if first <= cell.day <= last
    }
    whole: dict[Cell, int] = {}
    for cell, total in sums.items():
        if first <= cell.day <= last:
            together = cell._replace(day=first)
            whole[together] = whole.get(together, 0) + total
    assert sum_rates(rates.items(), first, last, now, by_day=False) == whole


def test_days_begin_at_midnight_in_utc() -> None:
    sums: dict[Cell, int] = {}
    add_ended(sums, UsePart(Use.IDLE, DAY - 1, 2 * DAY + 3), {"cpu": 2, "pods": 1})
    assert [(day, sums[Cell(day, "cpu", Use.IDLE)]) for day in range(3)] == [(0, 2), (1, 2 * DAY), (2, 6)]
    assert sum(total for cell, total in sums.items() if cell.resource == "pods") == DAY + 4


def test_what_has_not_begun_by_another_clock_is_nothing() -> None:
    rates: dict[Cell, Rate] = {}
    add_rate(rates, UsePart(Use.USEFUL, 500, None), {"cpu": 3})
    assert sum_rates(rates.items(), 0, 0, 400) == {}
    assert sum_rates(rates.items(), 0, 0, 501) == {Cell(0, "cpu", Use.USEFUL): 3}


def test_rows_are_sorted_and_those_without_a_value_come_last() -> None:
    cpu = Cell(1, "cpu", Use.USEFUL)
    found = [
        ((None,), cpu, 1),
        (("b",), cpu, 2),
        (("a",), cpu._replace(day=2), 3),
        (("a",), cpu, 4),
        (("a",), cpu._replace(use=Use.IDLE), 5),
        (("c",), cpu, 0),
    ]
    rows = [(row.key, row.sums["cpu"][Use.USEFUL], row.sums["cpu"][Use.IDLE]) for row in collect(["user"], found)]
    assert rows == [(("a",), 7, 5), (("b",), 2, 0), ((None,), 1, 0)]
    by_day = collect(["user", "day"], found)
    assert [row.key for row in by_day] == [
        ("a", "1970-01-02"), ("a", "1970-01-03"), ("b", "1970-01-02"), (None, "1970-01-02")
    ]  # fmt: skip
    assert collect([], [((), cpu, 1), ((), cpu, 2)])[0] == UsageRow(
        key=(), sums={"cpu": {**dict.fromkeys(Use, 0), Use.USEFUL: 3}}
    )
    assert date(1970, 1, 2).isoformat() == by_day[0].key[1]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("namespace", True), ("day", True), ("label:team", True), ("label:a.b/c-d", True), ("label:", False),
     ("label:-a", False), ("team", False), ("Namespace", False), ("label:a/b/c", False)],
)  # fmt: skip
def test_what_usage_can_be_added_up_by(name: str, is_one: bool) -> None:  # noqa: FBT001  a case
    assert is_dimension(name) is is_one
