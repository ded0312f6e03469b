"""Decides how a page of a list is read: along which sorted index, and which filters remain to be checked row by row.

    filter, indexes ─▶ index, its ranges, and the conditions that the rows of these ranges do not fulfil by themselves

A sorted index is read in ranges, one for each combination of values of its columns. Within a range, entries are in the
order of lists, so the list is the merge of all ranges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

from app.db.lists.conditions import ListCondition, about, not_about
from app.db.objects.resources import SortedIndex, Stored
from app.domain.listing import Criteria
from app.domain.vocabulary import TERMINAL_PHASES

MAX_RANGES: Final = 30
"""A filter with more combinations of values uses an index with fewer columns: each takes time to be planned."""

NOT_ENDED: Final = ""
"""The value of the column `ended` of a job in a phase that is not terminal."""
ENDED: Final = (NOT_ENDED, *sorted(TERMINAL_PHASES))


def end_of(phase: str) -> str:
    """Return the value of the column `ended` of a job in this phase."""
    return phase if phase in TERMINAL_PHASES else NOT_ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAccess:
    """A sorted index, the values of its columns in each range, and the conditions of the filter.

    `within` bounds each range by time. The rows of the ranges are still to be checked for `remaining`.
    """

    index: SortedIndex
    ranges: Sequence[tuple[str, ...]]
    within: Sequence[ListCondition]
    remaining: Sequence[ListCondition]


def needs_kinds(stored: Stored[Any], where: Criteria) -> bool:
    """Return whether `choose` needs the stored kinds: only one index serves phases, and it begins with the kind."""
    return bool(stored.kinds and where.phases and not where.kinds)


def choose(
    stored: Stored[Any],
    where: Criteria,
    conditions: Sequence[ListCondition],
    kinds: Sequence[str],
    *,
    max_ranges: int = MAX_RANGES,
) -> ListAccess:
    """Return the access by the usable index with the most columns.

    `conditions` are those of the filter, and `kinds` the stored kinds, if `needs_kinds`.
    """
    values = _find_values(where, where.kinds or kinds)
    index = max(
        (index for index in stored.sorted_indexes if _is_usable(index, where, values, max_ranges)),
        key=lambda index: len(index.columns),
    )
    ranges = list(product(*(values[column] for column in index.columns)))
    return ListAccess(
        index=index,
        ranges=ranges,
        within=about(conditions, "created_at"),
        remaining=not_about(conditions, "created_at", *_find_served(index, where)),
    )


def _find_values(where: Criteria, kinds: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the values that matching rows can have, by column. A column of which nothing is known is absent."""
    known: dict[str, Sequence[str]] = {}
    if where.namespaces.names is not None:
        known["namespace"] = where.namespaces.names
    if where.creator_id is not None:
        known["created_by_id"] = [where.creator_id]
    if where.set_name is not None:
        known["set_name"] = [where.set_name]
    if kinds:
        known["kind"] = sorted(set(kinds))
        known["ended"] = sorted(set(map(end_of, where.phases)) or ENDED)
    return known


def _is_usable(index: SortedIndex, where: Criteria, values: dict[str, Sequence[str]], max_ranges: int) -> bool:
    if index.only_present and (where.deleted or where.uids):
        return False
    known = all(column in values for column in index.columns)
    return known and prod(len(values[column]) for column in index.columns) <= max_ranges


def _find_served(index: SortedIndex, where: Criteria) -> set[str]:
    """Return the attributes whose conditions every row of the ranges fulfils."""
    served = {column for column in index.columns if column != "ended"}
    if "ended" in index.columns and TERMINAL_PHASES.issuperset(where.phases):
        served.add("phase")
    if index.only_present:
        served.add("present")
    return served
