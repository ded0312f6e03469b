"""A label has a bounded number of values, and a name keeps its value."""

from hypothesis import given
from hypothesis import strategies as st

from app.base.bounded_names import OTHERS, BoundedNames


@given(st.lists(st.text(alphabet="abcdef", min_size=1, max_size=2)), st.integers(min_value=0, max_value=5))
def test_labels_are_bounded_and_stable(names: list[str], most: int) -> None:
    bounded = BoundedNames(most)
    first = [bounded.label(name) for name in names]
    assert len(set(first) - {OTHERS}) <= most
    assert [bounded.label(name) for name in names] == first
    assert all(label in (name, OTHERS) for name, label in zip(names, first, strict=True))
    distinct = list(dict.fromkeys(names))
    assert set(first) - {OTHERS} == set(distinct[:most])
