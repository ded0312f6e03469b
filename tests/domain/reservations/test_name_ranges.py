"""Ranges stand for exactly the names that they hold: whatever is done with ranges is what sets of names would give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.reservations.name_ranges import NO_NUMBER, NameRange, merge_ranges, number_range, split, without


@pytest.mark.parametrize(
    ("name", "stem", "number"),
    [
        ("a-worker-0", "a-worker-", 0),
        ("a-worker-10", "a-worker-", 10),
        ("train7", "train", 7),
        ("train", "train", NO_NUMBER),
        ("a-007", "a-007", NO_NUMBER),
        ("a-00", "a-00", NO_NUMBER),
        ("12", "12", NO_NUMBER),
        ("a-999999999", "a-", 999_999_999),
        ("a-1000000000", "a-1000000000", NO_NUMBER),
        ("1.2", "1.", 2),
        ("", "", NO_NUMBER),
    ],
)
def test_a_name_is_a_stem_and_a_number(name: str, stem: str, number: int) -> None:
    assert split(name) == (stem, number)


stems = st.sampled_from(["a-", "a-1-", "a", "b-worker-"])
numbered_ranges = st.builds(
    lambda kind, stem, first, count: NameRange(kind, f"{stem}{first}", count),
    st.sampled_from(["pod", "service"]),
    stems,
    st.integers(0, 12),
    st.integers(1, 6),
)
whole_names = st.builds(NameRange, st.sampled_from(["pod", "service"]), st.sampled_from(["a", "a-", "a-07", "b", "3"]))
ranges = st.lists(numbered_ranges | whole_names, max_size=6)


def names_of(some: list[NameRange]) -> set[tuple[str, str]]:
    return {(one.kind, name) for one in some for name in one.names}


@settings(deadline=None)
@given(ranges, ranges)
def test_ranges_share_a_name_when_the_sets_of_their_names_intersect(
    one: list[NameRange], other: list[NameRange]
) -> None:
    shared = {(a.kind, name) for a in one for b in other if (name := a.first_shared(b)) is not None}
    both = names_of(one) & names_of(other)
    assert shared <= both
    assert bool(shared) == bool(both)


@settings(deadline=None)
@given(ranges)
def test_merged_ranges_have_the_same_names_without_duplicates(some: list[NameRange]) -> None:
    result = merge_ranges(some)
    assert names_of(result) == names_of(some)
    assert sum(one.count for one in result) == len(names_of(some))
    assert merge_ranges(result) == result
    assert len(result) <= len(some)


@settings(deadline=None)
@given(ranges, ranges)
def test_without_is_the_difference_of_the_sets(wanted: list[NameRange], owned: list[NameRange]) -> None:
    result = without(wanted, owned)
    assert names_of(result) == names_of(wanted) - names_of(owned)
    assert sum(one.count for one in result) == len(names_of(result))


def test_neighbours_become_one_range() -> None:
    pieces = [NameRange("pod", f"a-{n}") for n in (10, 8, 9, 2)]
    assert merge_ranges(pieces) == [NameRange("pod", "a-2"), NameRange("pod", "a-8", 3)]


@pytest.mark.parametrize(("first", "last"), [("a-0", "b-1"), ("a-0", "a-2"), ("a", "a"), ("a-1", "a-0")])
def test_names_without_consecutive_numbers_are_refused(first: str, last: str) -> None:
    with pytest.raises(ValueError, match="consecutive numbers"):
        number_range("pod", first, last, 2)
