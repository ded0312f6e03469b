"""The queue that serves its keys in turn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fairness.fair_queue import FairQueue

KEYS = st.sampled_from("abcd")


def filled(capacity: int, keys: str) -> FairQueue[str, str]:
    """Return a queue to which an entry such as "a0" was added for each key; the digits count the entries of the key."""
    queue: FairQueue[str, str] = FairQueue(capacity)
    counts: Counter[str] = Counter()
    for key in keys:
        queue.push(key, f"{key}{counts[key]}")
        counts[key] += 1
    return queue


def drained(queue: FairQueue[str, str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


@pytest.mark.parametrize(
    ("capacity", "keys", "served"),
    [
        pytest.param(9, "", [], id="empty"),
        pytest.param(9, "aaa", ["a0", "a1", "a2"], id="one key: in the order of arrival"),
        pytest.param(9, "aaab", ["a0", "b0", "a1", "a2"], id="a key with one entry waits for one other"),
        pytest.param(9, "aabbc", ["a0", "b0", "c0", "a1", "b1"], id="keys take turns"),
        pytest.param(3, "aaaa", ["a0", "a1", "a2"], id="full of its own entries"),
        pytest.param(3, "aaab", ["a0", "b0", "a1"], id="full: the newest entry of the longest key makes room"),
        pytest.param(2, "aab", ["a0", "b0"], id="two more make room"),
        pytest.param(2, "abb", ["a0", "b0"], id="one more does not"),
        pytest.param(2, "abc", ["a0", "b0"], id="full of equally many entries of each key"),
    ],
)
def test_keys_are_served_in_turn(capacity: int, keys: str, served: list[str]) -> None:
    assert drained(filled(capacity, keys)) == served


def test_an_entry_that_is_removed_frees_its_room() -> None:
    queue = filled(2, "ab")
    assert queue.remove("a", "a0")
    assert not queue.remove("a", "a0")
    assert not queue.remove("b", "b1")
    assert queue.push("c", "c0") is None
    assert drained(queue) == ["b0", "c0"]


def test_an_empty_queue_has_nothing_to_serve() -> None:
    with pytest.raises(IndexError):
        FairQueue[str, str](1).pop()


def test_a_queue_without_room_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        FairQueue[str, str](0)


@given(st.integers(1, 6), st.lists(st.one_of(KEYS, st.just("pop"), KEYS.map(str.upper)), max_size=60))
def test_every_entry_leaves_once_and_no_key_starves(capacity: int, steps: list[str]) -> None:
    """A small letter adds an entry, a capital letter removes the key's oldest one, "pop" serves one."""
    queue: FairQueue[str, tuple[str, int]] = FairQueue(capacity)
    waiting: list[tuple[str, int]] = []
    passed_over: Counter[str] = Counter()  # how often another key was served while this one waited
    for number, step in enumerate(steps):
        held = Counter(key for key, _ in waiting)
        if step == "pop":
            if not waiting:
                continue
            served = queue.pop()
            assert served == next(entry for entry in waiting if entry[0] == served[0]), "the oldest entry of its key"
            waiting.remove(served)
            passed_over.pop(served[0], None)
            passed_over.update(held.keys() - {served[0]})
            assert all(count < 4 for count in passed_over.values()), "each other key is served once at most before"
        elif step.isupper():
            key = step.lower()
            oldest = next((entry for entry in waiting if entry[0] == key), (key, -1))
            assert queue.remove(key, oldest) == (oldest in waiting)
            if oldest in waiting:
                waiting.remove(oldest)
            if all(entry[0] != key for entry in waiting):
                passed_over.pop(key, None)
        else:
            entry = (step, number)
            waiting.append(entry)
            dropped = queue.push(step, entry)
            assert (dropped is not None) == (len(waiting) > capacity)
            if dropped is not None:
                assert held[dropped[0]] >= (held[step] + 2 if dropped != entry else 0)
                assert dropped == next(each for each in reversed(waiting) if each[0] == dropped[0])
                if dropped == entry:
                    assert max(held.values()) <= held[step] + 1 or held[step] * len(held) >= capacity
                waiting.remove(dropped)
        assert len(queue) == len(waiting) <= capacity
