"""The cache that is bounded by the size of its values."""

from app.domain.sized_cache import SizedCache


def test_the_values_that_were_used_last_are_kept() -> None:
    cache: SizedCache[str, int] = SizedCache(max_bytes=10)
    cache.put("a", 1, size=4)
    cache.put("b", 2, size=4)
    assert cache.get("a") == 1
    cache.put("c", 3, size=4)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_the_newest_value_is_kept_whatever_its_size() -> None:
    cache: SizedCache[str, int] = SizedCache(max_bytes=10)
    cache.put("a", 1, size=4)
    cache.put("large", 2, size=40)
    assert (cache.get("large"), len(cache)) == (2, 1)


def test_a_replaced_value_counts_once() -> None:
    cache: SizedCache[str, int] = SizedCache(max_bytes=10)
    cache.put("a", 1, size=4)
    for value in range(5):
        cache.put("b", value, size=6)
    assert (cache.get("a"), cache.get("b")) == (1, 4)
