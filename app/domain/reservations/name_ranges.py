"""Sets of names in a namespace. The names of replicas are ranges, such as `a-worker-0` and the 9 999 names after it.

A name consists of a stem and a number, the decimal without leading zeros at its end. A name without a number (`train`,
`a-007`) is only a stem. The database applies the same rule, see `app.models.reservations`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

NO_NUMBER: Final = -1
# At most nine digits, so that the sum of a number and the length of a range fits into an integer of PostgreSQL.
_NUMBERED: Final = re.compile("(.*[^0-9])(0|[1-9][0-9]{0,8})", re.DOTALL)


class NameKind(StrEnum):
    JOB = "job"
    POD = "pod"
    SERVICE = "service"
    CONFIG_MAP = "configmap"


class _Family(NamedTuple):
    """All names of one kind with one stem. Names of different families are never equal."""

    kind: str
    stem: str


@dataclass(frozen=True, slots=True, order=True)
class NameRange:
    """`count` names of one kind (a NameKind): `name`, and the names with the numbers that follow."""

    kind: str
    name: str
    count: int = 1

    @property
    def names(self) -> list[str]:
        """Every name of the range."""
        if self.count == 1:
            return [self.name]
        stem, first = split(self.name)
        return [f"{stem}{number}" for number in range(first, first + self.count)]

    def first_shared(self, other: "NameRange") -> str | None:
        """Return the first name that is in both ranges, or None."""
        mine, theirs = _Span.of(self), _Span.of(other)
        first = max(mine.first, theirs.first)
        if mine.family != theirs.family or first > min(mine.last, theirs.last):
            return None
        return _join(mine.family.stem, first)


# The order of the dataclass, which its own comparison computes slowly.
_IN_ORDER: Final = attrgetter("kind", "name", "count")


class _Span(NamedTuple):
    family: _Family
    first: int
    last: int

    @classmethod
    def of(cls, names: NameRange) -> "_Span":
        stem, first = split(names.name)
        return cls(_Family(names.kind, stem), first, first + names.count - 1)

    @property
    def range(self) -> NameRange:
        return NameRange(self.family.kind, _join(self.family.stem, self.first), self.last - self.first + 1)


# A submission splits each of its names several times.
@lru_cache(maxsize=1024)
def split(name: str) -> tuple[str, int]:
    """Return the stem and the number of a name. The number is NO_NUMBER if the name has none."""
    found = _NUMBERED.fullmatch(name)
    return (name, NO_NUMBER) if found is None else (found[1], int(found[2]))


def number_range(kind: str, first: str, last: str, count: int) -> NameRange:
    """Return the `count` names from `first` to `last`, which differ in their numbers.

    Raises:
        ValueError: the two names differ otherwise, so the names between them are unknown.
    """
    (stem, low), (other, high) = split(first), split(last)
    if low == NO_NUMBER or stem != other or high - low + 1 != count:
        raise ValueError(f"{first} to {last} are not {count} names that end in consecutive numbers")
    return NameRange(kind, first, count)


def merge_ranges(unmerged: Iterable[NameRange]) -> list[NameRange]:
    """Return the same names in as few ranges as possible, sorted."""
    ranges = list(unmerged)
    # Most jobs have one range in each family, so that no two can be joined.
    if len({(names.kind, split(names.name)[0]) for names in ranges}) == len(ranges):
        return sorted(ranges, key=_IN_ORDER)
    spans: list[_Span] = []
    for span in sorted(map(_Span.of, ranges)):
        before = spans[-1] if spans and spans[-1].family == span.family else None
        # Adjacent ranges are joined too, so that growing by single replicas does not accumulate rows.
        if before and span.first <= before.last + 1 and span.first != NO_NUMBER != before.first:
            spans[-1] = before._replace(last=max(before.last, span.last))
        elif span != before:
            spans.append(span)
    return sorted((span.range for span in spans), key=_IN_ORDER)


def without(wanted: Iterable[NameRange], owned: Iterable[NameRange]) -> list[NameRange]:
    """Return the wanted names that are not owned, in as few ranges as possible."""
    has: dict[_Family, list[_Span]] = defaultdict(list)
    for span in sorted(map(_Span.of, merge_ranges(owned))):
        has[span.family].append(span)
    spans = map(_Span.of, merge_ranges(wanted))
    return sorted(piece.range for span in spans for piece in _subtract(span, has[span.family]))


def _subtract(span: _Span, owned: Sequence[_Span]) -> Iterable[_Span]:
    first = span.first
    for other in owned:
        # Both lists are sorted and merged, so what remains begins after the last owned range that was subtracted.
        if other.last < first or other.first > span.last:
            continue
        if other.first > first:
            yield span._replace(first=first, last=other.first - 1)
        first = other.last + 1
    if first <= span.last:
        yield span._replace(first=first)


def _join(stem: str, number: int) -> str:
    return stem if number == NO_NUMBER else f"{stem}{number}"
