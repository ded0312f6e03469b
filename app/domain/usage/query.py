"""Which usage is wanted, and by what it is added up."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum, unique
from typing import Final

from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.usage.sums import Cell
from app.domain.vocabulary import Use

LABEL: Final = "label:"
MOST_DIMENSIONS: Final = 5
MOST_DAYS: Final = 3 * 366
_LABEL_KEY: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
EPOCH: Final = date(1970, 1, 1).toordinal()
_ONE: Final = timedelta(1)
_LONG_MONTH: Final = timedelta(31)


@unique
class Dimension(StrEnum):
    """By what usage is added up, besides labels."""

    NAMESPACE = "namespace"
    USER = "user"
    QUEUE = "queue"
    KIND = "kind"
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """The usage of the days from `first` to `last`, added up `by` dimensions and labels (`label:` and the key).

    Empty filters match everything. `namespaces` are those that the caller may see.
    """

    first: date
    last: date
    by: tuple[str, ...] = ()
    namespaces: NamespaceSet = EVERY_NAMESPACE
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """The usage of a group of jobs: `key` has the value of each dimension, None where the jobs have none.

    `sums` are amounts times milliseconds, by resource and use.
    """

    key: tuple[str | None, ...]
    sums: dict[str, dict[Use, int]] = field(default_factory=dict)

    def add(self, resource: str, use: Use, total: int) -> None:
        """Add to a sum. A resource of which nothing was used has none."""
        if total:
            uses = self.sums.setdefault(resource, dict.fromkeys(Use, 0))
            uses[use] += total


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A period whose usage is added to a sum, or subtracted from it if `is_subtracted`.

    It is the days from `first` to `last`, or whole months: then these are the first days of the first and the last one.
    """

    first: date
    last: date
    is_subtracted: bool = False


def stretches(first: date, last: date) -> tuple[Stretch | None, list[Stretch]]:
    """Return the months and the days whose usage together is that from the day `first` to the day `last`.

    There are as few days as possible: a month of which most days count is added whole, and its others are subtracted.
    """
    if last.year == date.max.year:
        # No month follows the last one.
        return None, [Stretch(first=first, last=last)]
    begin, end = _nearest_month(first), _nearest_month(last + _ONE)
    if begin >= end:
        return None, [Stretch(first=first, last=last)]
    months = Stretch(first=begin, last=(end - _ONE).replace(day=1))
    days = [
        Stretch(first=min(at, month), last=max(at, month) - _ONE, is_subtracted=is_subtracted)
        for at, month, is_subtracted in [(first, begin, first > begin), (last + _ONE, end, last + _ONE < end)]
        if at != month
    ]
    return months, days


def _nearest_month(day: date) -> date:
    """Return the first day of the month, or of the following one if that is nearer."""
    begin = day.replace(day=1)
    following = (begin + _LONG_MONTH).replace(day=1)
    return begin if day - begin <= following - day else following


def is_dimension(name: str) -> bool:
    """Return whether usage can be added up by this: by a dimension, or by a label."""
    if name.startswith(LABEL):
        return _LABEL_KEY.fullmatch(name.removeprefix(LABEL)) is not None
    return name in set(Dimension)


def label_keys(by: Iterable[str]) -> list[str]:
    """Return the keys of the labels among dimensions."""
    return [name.removeprefix(LABEL) for name in by if name.startswith(LABEL)]


def day_number(day: date) -> int:
    """Return the number of days since 1970."""
    return day.toordinal() - EPOCH


def date_of(day: int) -> date:
    return date.fromordinal(EPOCH + day)


def collect(by: Sequence[str], found: Iterable[tuple[tuple[str | None, ...], Cell, int]]) -> list[UsageRow]:
    """Add up sums of several sources. A key has a value for each dimension except the day, which the cell has."""
    rows: dict[tuple[str | None, ...], UsageRow] = {}
    index = by.index(Dimension.DAY) if Dimension.DAY in by else None
    for key, (day, resource, use), total in found:
        whole = key if index is None else (*key[:index], date_of(day).isoformat(), *key[index:])
        rows.setdefault(whole, UsageRow(key=whole)).add(resource, use, total)
    used = [row for row in rows.values() if row.sums]
    return sorted(used, key=lambda row: tuple((value is None, value or "") for value in row.key))
