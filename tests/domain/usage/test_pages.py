"""Cursors are in the order of groups, and sections follow each other without a gap."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.usage.pages import (
    Block,
    Cursor,
    before_all,
    behind_all,
    choose,
    cursor_of,
    is_cursor,
    section_of,
    value_of,
)
from app.domain.usage.query import UsageQuery, collect
from app.domain.usage.sums import Cell
from app.domain.vocabulary import Use

FIRST = date(2026, 1, 10)
BY_DAY = UsageQuery(first=FIRST, last=date(2026, 3, 20), by=("user", "day", "queue"))
MARCH = date(2026, 3, 1)
VALUES = st.sampled_from([None, "", "a", "a0", "b", "\U0001f600", "\uffff", "0", "2"])


@given(st.lists(st.tuples(VALUES, st.integers(0, 60), VALUES), max_size=20))
def test_places_are_in_the_order_of_the_groups(found: list[tuple[str | None, int, str | None]]) -> None:
    cells = [((user, queue), Cell(20_000 + day, "cpu", Use.IDLE), 1) for user, day, queue in found]
    keys = [row.key for row in collect(BY_DAY.by, cells)]
    cursors = [cursor_of(key, BY_DAY) for key in keys]
    assert cursors == sorted(cursors)
    assert all(cursor > before_all(BY_DAY) and is_cursor(cursor, BY_DAY) for cursor in cursors)
    assert [(value_of(user), day, value_of(queue)) for user, day, queue in cursors] == keys


@pytest.mark.parametrize(
    ("cursor", "valid"),
    [
        (("0a", "2026-01-31", "1"), True),
        (("0a", "2026-01-31"), False),
        (("0a", "2026-01-31", "1", "1"), False),
        (("0a", "20260131", "1"), False),
        (("0a", "2026-02-30", "1"), False),
        (("0a", "", "1"), False),
    ],
)
def test_a_made_up_cursor_is_found(cursor: Cursor, *, valid: bool) -> None:
    assert is_cursor(cursor, BY_DAY) is valid


def test_as_many_blocks_are_read_as_have_the_groups_within_the_limit() -> None:
    blocks = [Block((f"0{number}",), None, 100, 10) for number in range(10)]
    assert choose(blocks, wanted=25, most=10_000) == 3
    assert choose(blocks, wanted=1000, most=10_000) == 10
    assert choose(blocks, wanted=1000, most=450) == 4
    assert choose(blocks, wanted=1000, most=1) == 1


@given(st.integers(1, 3000), st.sampled_from(["0a", "0b"]))
def test_a_block_with_very_many_sums_is_read_in_parts(most: int, user: str) -> None:
    block, behind, days = Block((user,), MARCH, 3100, 1), before_all(BY_DAY), list[date]()
    while behind < behind_all(block, BY_DAY):
        section = section_of([block], behind, BY_DAY, most)
        assert section.until > behind
        count = (section.last - section.first).days + 1
        assert count == 1 or count * 100 <= max(most, 100) or section.until == behind_all(block, BY_DAY)
        days += [section.first + timedelta(number) for number in range(count)]
        behind = section.until
    assert days == [MARCH + timedelta(number) for number in range(20)]


def test_blocks_of_several_prefixes_have_all_days() -> None:
    blocks = [Block(("0a",), MARCH, 1, 1), Block(("0b",), date(2026, 1, 1), 1, 1)]
    section = section_of(blocks, ("0a", "2026-02-28", "2"), BY_DAY, 100)
    assert (section.first, section.last) == (BY_DAY.first, BY_DAY.last)
    assert section.has(("0a", "2026-03-01", "1"))
    assert section.has(("0b", "2026-01-31", "0q"))
    assert not section.has(("0a", "2026-02-28", "1"))
    assert not section.has(("0b", "2026-02-01", "0"))


def test_the_last_day_of_all_ends() -> None:
    query = UsageQuery(first=date(9999, 12, 1), last=date.max, by=("day",))
    block = Block((), date(9999, 12, 1), 31, 31)
    section = section_of([block], before_all(query), query, 100)
    assert (section.first, section.last, section.until) == (query.first, date.max, ("9999-12-31",))
    assert before_all(UsageQuery(first=date.min, last=date.min, by=("day",))) == ("0001-01-01",)
