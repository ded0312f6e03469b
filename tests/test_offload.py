"""Which documents are processed in a thread."""

import pytest

from app.offload import is_large

LONG = "x" * 1500
MANY = 2000


@pytest.mark.parametrize(
    ("document", "large"),
    [
        ({"metadata": {"name": "a"}}, False),
        ({str(number): number for number in range(MANY)}, True),
        ([[number] for number in range(MANY)], True),
        ({"text": LONG * MANY}, True),
        ({f"{LONG}{number}": None for number in range(MANY // 5)}, True),
        ({LONG: None}, False),
    ],
    ids=["small", "many fields", "many items", "long text", "long keys", "one long key"],
)
def test_what_is_large(*, document: object, large: bool) -> None:
    assert is_large(document) is large
