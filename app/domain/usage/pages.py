"""Cursors among the groups of usage, with which a page reads little more than it shows.

Groups are in the order of their keys. They are read in blocks: all days of a group, or, by day, those of a month of the
groups with the same values before the day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, NamedTuple, TypeAlias

from app.domain.usage.query import Dimension, UsageQuery

Key: TypeAlias = tuple[str | None, ...]
Cursor: TypeAlias = tuple[str, ...]
"""A text for each dimension, in the order of code points: a day, or `0` and a value, `1` for none, `2` behind all."""

_VALUE: Final = "0"
_NONE: Final = "1"
_BEHIND: Final = "2"
LONGEST_MONTH: Final = 31
_LONG_MONTH: Final = timedelta(LONGEST_MONTH)
_ONE: Final = timedelta(1)


class Block(NamedTuple):
    """A part of the groups. It has at most so many `sums`, and by day so many groups (`cells`)."""

    prefix: Cursor
    month: date | None
    sums: int
    cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The groups behind a cursor, up to and with another one. `first` and `last` are the days of their sums."""

    behind: Cursor
    until: Cursor
    first: date
    last: date

    def has(self, cursor: Cursor) -> bool:
        return not cursor or self.behind < cursor <= self.until


def day_index(query: UsageQuery) -> int | None:
    """Return where the day is among the dimensions."""
    return query.by.index(Dimension.DAY) if Dimension.DAY in query.by else None


def prefix_length(query: UsageQuery) -> int:
    """Return how many values the groups of a block have in common."""
    index = day_index(query)
    return len(query.by) if index is None else index


def cursor_of(key: Key, query: UsageQuery) -> Cursor:
    """Return the cursor of a group."""
    index = day_index(query)
    return tuple(
        str(value) if position == index else _NONE if value is None else _VALUE + value
        for position, value in enumerate(key)
    )


def value_of(text: str) -> str | None:
    """Return the value of a dimension that is not the day."""
    return text.removeprefix(_VALUE) if text.startswith(_VALUE) else None


def is_cursor(cursor: Sequence[str], query: UsageQuery) -> bool:
    """Return whether these texts can be a cursor of the query."""
    index = day_index(query)
    return len(cursor) == len(query.by) and (index is None or _is_day(cursor[index]))


def before_all(query: UsageQuery) -> Cursor:
    day = (max(query.first, date.min + _ONE) - _ONE).isoformat()
    return tuple(day if name == Dimension.DAY else "" for name in query.by)


def behind_all(block: Block, query: UsageQuery) -> Cursor:
    """Return the cursor behind all groups of a block."""
    if block.month is None:
        return block.prefix
    return _behind_day(block, _end_of(block.month), query)


def first_day(behind: Cursor, query: UsageQuery) -> date:
    """Return the first day on which groups with the same prefix can lie behind a cursor."""
    index = day_index(query)
    assert index is not None, "the groups have a day"
    day, rest = date.fromisoformat(behind[index]), behind[index + 1 :]
    has_more = any(text != _BEHIND for text in rest)
    return day if has_more or day == date.max else day + _ONE


def choose(blocks: Sequence[Block], wanted: int, most: int) -> int:
    """Return how many of the blocks to read for so many groups, with at most so many sums unless the first has more."""
    sums = cells = 0
    for number, block in enumerate(blocks):
        sums, cells = sums + block.sums, cells + block.cells
        if number and sums > most:
            return number
        if cells >= wanted:
            return number + 1
    return len(blocks)


def section_of(blocks: Sequence[Block], behind: Cursor, query: UsageQuery, most: int) -> Section:
    """Return what blocks that follow each other have behind a cursor: of a block with more sums, only some days."""
    first, last = query.first, query.last
    begin, end = blocks[0], blocks[-1]
    until = behind_all(end, query)
    # With several prefixes, the days of the first and of the last one overlap.
    if begin.prefix == end.prefix and begin.month is not None and end.month is not None:
        first, last = max(first, begin.month), min(last, _end_of(end.month))
        if behind[: len(begin.prefix)] == begin.prefix:
            first = max(first, first_day(behind, query))
        days = max(1, LONGEST_MONTH * most // max(1, begin.sums))
        if begin is end and days <= (last - first).days:
            last = first + _ONE * (days - 1)
            until = _behind_day(begin, last, query)
    return Section(behind=behind, until=until, first=first, last=last)


def _behind_day(block: Block, day: date, query: UsageQuery) -> Cursor:
    rest = len(query.by) - len(block.prefix) - 1
    return (*block.prefix, day.isoformat(), *[_BEHIND] * rest)


def _end_of(month: date) -> date:
    if (month.year, month.month) == (date.max.year, date.max.month):
        return date.max
    return (month + _LONG_MONTH).replace(day=1) - _ONE


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
