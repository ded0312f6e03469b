"""The cache with a limit."""

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.caches import BoundedCache

# A method, a key, and the size of a value.
Step: TypeAlias = tuple[str, str, int]
LIMIT = 10


class Model:
    """What a cache contains: values and sizes, that of the latest use last."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int, int]] = []
        self.dropped: list[int] = []

    def put(self, key: str, value: int, size: int) -> None:
        self.pop(key)
        self.entries.append((key, value, size))
        while len(self.entries) > 1 and sum(size for _, _, size in self.entries) > LIMIT:
            self.dropped.append(self.entries.pop(0)[1])

    def get(self, key: str) -> int | None:
        found = next((entry for entry in self.entries if entry[0] == key), None)
        if found is None:
            return None
        self.entries.remove(found)
        self.entries.append(found)
        return found[1]

    def pop(self, key: str) -> int | None:
        value = self.get(key)
        if value is not None:
            self.entries.pop()
        return value


STEPS = st.lists(st.tuples(st.sampled_from(["put", "put", "get", "pop"]), st.sampled_from("abcd"), st.integers(0, 12)))


@given(steps=STEPS)
def test_a_cache_keeps_what_was_used_last(steps: list[Step]) -> None:
    model, dropped = Model(), list[int]()
    cache: BoundedCache[str, int] = BoundedCache(LIMIT, on_drop=dropped.append)
    for value, (method, key, size) in enumerate(steps):
        if method == "put":
            cache.put(key, value, size)
            model.put(key, value, size)
        else:
            assert getattr(cache, method)(key) == getattr(model, method)(key)
        assert (len(cache), dropped) == (len(model.entries), model.dropped)


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([("put", "a", 4), ("put", "b", 4), ("put", "c", 4)], "bc"),
        ([("put", "a", 4), ("put", "b", 4), ("get", "a", 0), ("put", "c", 4)], "ac"),
        ([("put", "a", 4), ("put", "b", 4), ("put", "a", 4), ("put", "c", 4)], "ac"),
        ([("put", "a", 4), ("put", "b", 40)], "b"),
        ([("put", "a", 40), ("put", "b", 4)], "b"),
        ([("put", "a", 4), *[("put", "b", 6)] * 5], "ab"),
        ([("put", "a", 9), ("pop", "a", 0), ("put", "b", 5), ("put", "c", 5)], "bc"),
    ],
    ids=["unused", "read", "replaced", "one large", "a former large", "replaced values count once", "removed"],
)
def test_what_a_cache_drops(steps: list[Step], kept: str) -> None:
    cache: BoundedCache[str, int] = BoundedCache(LIMIT)
    for method, key, size in steps:
        if method == "put":
            cache.put(key, 1, size)
        else:
            getattr(cache, method)(key)
    assert [key for key in "abc" if cache.get(key)] == list(kept)


def test_without_sizes_the_limit_is_a_number_of_values() -> None:
    cache: BoundedCache[int, int] = BoundedCache(3)
    for number in range(10):
        cache.put(number, number)
    assert [cache.get(number) for number in range(6, 10)] == [None, 7, 8, 9]
