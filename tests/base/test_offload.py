"""Which documents are processed in a thread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base import offload
from app.base.offload import is_large

LONG = "x" * 1500
MANY = 2000
DEEP = 10_000
_VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=600),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(max_size=600), inside),
)


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("document", "large"),
    [
        ({"metadata": {"name": "a"}}, False),
        ({str(number): number for number in range(MANY)}, True),
        ([[number] for number in range(MANY)], True),
        ({"text": LONG * MANY}, True),
        ({f"{LONG}{number}": None for number in range(MANY // 5)}, True),
        ({LONG: None}, False),
        ([0] * (MANY - 2), False),
        ([0] * (MANY - 1), True),
        ([[]] * (MANY - 1), True),
        (nested(DEEP), True),
        ({"text": "\ud800"}, False),
    ],
    ids=[
        *("small", "many fields", "many items", "long text", "long keys", "one long key"),
        *("one item less than many", "shortest text of many items", "shortest text of many lists"),
        *("too deep to be encoded", "not a text of Unicode"),
    ],
)
def test_what_is_large(*, document: object, large: bool) -> None:
    assert is_large(document) is large


@given(value=_VALUES, most=st.integers(1, 60))
def test_a_value_with_a_short_text_is_small(value: object, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offload, "_SMALL", most)
        assert is_large(value) is offload._count_exceeds(value)
