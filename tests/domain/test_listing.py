"""Which changes can concern a page of a list: never a false no, whatever the filter and the change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes.selectors import parse_selector
from app.domain.listing import Criteria, Extent, ListItem, concerns

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def thing(number: int = 1, **changes: object) -> ListItem:
    made = ListItem(
        uid=UUID(int=number),
        namespace="a",
        name="train",
        kind="GenericJob",
        phase="Running",
        labels={"team": "x"},
        created_at=at(number),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Page:
    """What a list shows: things with their versions, and whether there are more."""

    shown: tuple[tuple[UUID, int], ...]
    extent: Extent


def page_of(
    stored: Sequence[tuple[ListItem, int]], criteria: Criteria, size: int, after: tuple[datetime, UUID] | None
) -> Page:
    """The model: filter everything, sort, cut."""
    found = [(one, version) for one, version in stored if criteria.matches(one)]
    found.sort(key=lambda pair: (pair[0].created_at, pair[0].uid), reverse=True)
    found = [pair for pair in found if after is None or (pair[0].created_at, pair[0].uid) < after]
    shown = found[:size]
    ends_at = (shown[-1][0].created_at, shown[-1][0].uid) if len(found) > size else None
    extent = Extent(uids=frozenset(one.uid for one, _ in shown), begins_after=after, ends_at=ends_at)
    return Page(tuple((one.uid, version) for one, version in shown), extent)


MUTABLE = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["Running", "Failed"]),
        "labels": st.sampled_from([{}, {"team": "x"}, {"team": "y"}]),
        "finished_at": st.sampled_from([None, at(3), at(9)]),
        "set_name": st.sampled_from(["", "one"]),
        "queue": st.sampled_from(["", "team"]),
        "still_running": st.booleans(),
        "deleted": st.booleans(),
    }
)
FIXED = st.fixed_dictionaries(
    {
        "namespace": st.sampled_from(["a", "b"]),
        "name": st.sampled_from(["train", "eval"]),
        "kind": st.sampled_from(["GenericJob", "MxJob"]),
        "created_by": st.sampled_from(["ann", "bob"]),
        "created_by_id": st.sampled_from([None, "token:1"]),
        "created_at": st.sampled_from([at(0), at(1), at(2)]),
    }
)
CRITERIA = st.builds(
    Criteria,
    namespaces=st.sampled_from([NamespaceSet(), NamespaceSet.of("a")]),
    kinds=st.sampled_from([(), ("MxJob",)]),
    uids=st.sampled_from([(), (), (UUID(int=1), UUID(int=2))]),
    search=st.sampled_from([None, "rai"]),
    prefix=st.sampled_from([None, "e"]),
    name=st.sampled_from([None, "train"]),
    creator_name=st.sampled_from([None, "ann"]),
    creator_id=st.sampled_from([None, "token:1"]),
    created_after=st.sampled_from([None, at(1)]),
    created_before=st.sampled_from([None, at(2)]),
    phases=st.sampled_from([(), ("Running",)]),
    labels=st.sampled_from([(), parse_selector("team=x"), parse_selector("!team"), parse_selector("team!=x")]),
    set_name=st.sampled_from([None, "one"]),
    queue=st.sampled_from([None, "team"]),
    finished_after=st.sampled_from([None, at(3)]),
    finished_before=st.sampled_from([None, at(9)]),
    still_running=st.booleans(),
    deleted=st.booleans(),
)


@given(
    st.lists(st.tuples(FIXED, MUTABLE), min_size=1, max_size=6),
    st.integers(0, 5),
    MUTABLE,
    st.booleans(),
    CRITERIA,
    st.integers(1, 3),
    st.sampled_from([None, (at(2), UUID(int=3)), (at(1), UUID(int=9))]),
)
def test_a_change_of_a_page_is_found(
    stored: list[tuple[dict[str, object], dict[str, object]]],
    which: int,
    becomes: dict[str, object],
    is_new: bool,  # noqa: FBT001
    criteria: Criteria,
    size: int,
    after: tuple[datetime, UUID] | None,
) -> None:
    things = [(thing(number, **fixed, **mutable), 1) for number, (fixed, mutable) in enumerate(stored, 1)]
    which %= len(things)
    changed = replace(things[which][0], **becomes)  # type: ignore[arg-type]
    later = [*things[:which], (changed, 2), *things[which + 1 :]]
    if is_new:
        things = [*things[:which], *things[which + 1 :]]
    before, now = page_of(things, criteria, size, after), page_of(later, criteria, size, after)
    if before.shown != now.shown or before.extent.ends_at != now.extent.ends_at:
        assert concerns(criteria, before.extent, changed)


@pytest.mark.parametrize(
    ("criteria", "extent", "changed", "expected"),
    [
        (Criteria(search="x"), Extent(), thing(), False),
        (Criteria(search="rai"), Extent(), thing(), True),
        (Criteria(phases=("Failed",)), Extent(), thing(), False),
        (Criteria(phases=("Failed",)), Extent(uids=frozenset({UUID(int=1)})), thing(), True),
        (Criteria(), Extent(ends_at=(at(5), UUID(int=5))), thing(4), False),
        (Criteria(), Extent(ends_at=(at(5), UUID(int=5))), thing(6), True),
        (Criteria(phases=("Failed",)), Extent(ends_at=(at(5), UUID(int=5))), thing(4), True),
        (Criteria(kinds=("MxJob",)), Extent(ends_at=(at(5), UUID(int=5))), thing(4), False),
        (Criteria(), Extent(begins_after=(at(5), UUID(int=5))), thing(6), False),
        (Criteria(labels=parse_selector("team=y")), Extent(), thing(), False),
        (Criteria(still_running=True), Extent(), thing(), False),
        (Criteria(still_running=True), Extent(), thing(still_running=True), True),
        (Criteria(), Extent(), thing(deleted=True), False),
        (Criteria(deleted=True), Extent(), thing(deleted=True), True),
    ],
)
def test_changes_that_cannot_affect_a_page(
    criteria: Criteria, extent: Extent, changed: ListItem, *, expected: bool
) -> None:
    assert concerns(criteria, extent, changed) is expected
