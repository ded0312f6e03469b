"""Pods are shared among processes without an agreement between them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.domain.kept_logs.sharing import owner_of

NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)


@given(NAMES, st.text(max_size=8))
def test_every_process_finds_the_same_owner(processes: list[str], key: str) -> None:
    owner = owner_of(key, processes)
    assert owner in processes
    assert owner_of(key, reversed(processes)) == owner
    assert owner_of(key, [process for process in processes if process in (owner, processes[0])]) == owner
    assert owner_of(key, []) is None


def test_a_process_that_goes_leaves_only_its_own_share() -> None:
    processes, keys = [f"process-{number}" for number in range(4)], [f"pod-{number}" for number in range(1000)]
    before = {key: owner_of(key, processes) for key in keys}
    after = {key: owner_of(key, processes[1:]) for key in keys}
    assert {key for key in keys if before[key] != after[key]} == {key for key in keys if before[key] == processes[0]}
    assert min(Counter(before.values()).values()) > 150
