"""Lines of several logs in the order of their times."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import Rank
from app.services.logs.order import MergedLine, TimeMerge

Batches = Sequence[Sequence[str]]


def line(rank: int, at: str, text: str = "") -> MergedLine:
    return MergedLine(Rank("worker", rank), 1, at, text.encode())


def merged(logs: Sequence[Batches]) -> list[MergedLine]:
    """Merge logs, of each of which one batch at a time is known."""
    merge = TimeMerge()
    left = {Rank("worker", rank): list(batches) for rank, batches in enumerate(logs)}
    for key in left:
        merge.open(key)
    found: list[MergedLine] = []
    while missing := merge.missing():
        for key in missing:
            if left[key]:
                merge.push(key, [line(key.rank, at) for at in left[key].pop(0)])
            else:
                merge.close(key)
        found += merge.take()
    return found


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ([], []),
        ([[["01.1Z"], ["01.3Z"]], [["01.2Z", "01.4Z"]]], [(0, "01.1Z"), (1, "01.2Z"), (0, "01.3Z"), (1, "01.4Z")]),
        # Texts would be in another order: the cluster omits zeros at the end.
        ([[["01.15Z"]], [["01.1Z", "01Z"]]], [(1, "01.1Z"), (1, "01Z"), (0, "01.15Z")]),
        # A stored log has no times.
        ([[["01.1Z"]], [["", ""]]], [(1, ""), (1, ""), (0, "01.1Z")]),
        ([[["01.1Z", "", "01.3Z"]], [["01.2Z"]]], [(0, "01.1Z"), (0, ""), (1, "01.2Z"), (0, "01.3Z")]),
    ],
)
def test_the_order_of_lines(logs: Sequence[Batches], expected: list[tuple[int, str]]) -> None:
    assert [(one.key.rank, one.at) for one in merged(logs)] == expected


TIMES = st.integers(0, 50).map("{:02}.5Z".format)


@given(st.lists(st.lists(st.lists(TIMES, max_size=4), max_size=4), max_size=4))
def test_logs_in_order_are_merged_in_order(given_logs: list[list[list[str]]]) -> None:
    logs = [in_order(batches) for batches in given_logs]
    found = merged(logs)
    assert [one.at for one in found] == sorted(one.at for one in found)
    for rank, batches in enumerate(logs):
        assert [one.at for one in found if one.key.rank == rank] == [at for batch in batches for at in batch]


def in_order(batches: Batches) -> Batches:
    times = iter(sorted(at for batch in batches for at in batch))
    return [[next(times) for _ in batch] for batch in batches]
