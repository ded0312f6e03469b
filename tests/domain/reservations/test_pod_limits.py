"""Limits on planned pods: what fits, what is said of what does not, and what those add who see nobody else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.reservations.pod_limits import PodLimits, PodRoom, share

LIMITS = PodLimits(installation=100, namespace=60)


def test_pods_are_counted_against_both_limits() -> None:
    room = PodRoom(LIMITS)
    assert room.take("a", 50) is None
    over = room.take("a", 11)
    assert over is not None
    assert (over.namespace, over.wanted, over.planned, over.limit) == ("a", 11, 50, 60)
    assert room.take("b", 45) is None
    over = room.take("b", 6)
    assert over is not None
    assert (over.namespace, over.planned) == (None, 95)
    assert room.take("b", 5) is None


def test_requests_without_new_pods_are_never_refused() -> None:
    room = PodRoom(LIMITS, planned=1000, by_namespace={"a": 1000})
    assert room.take("a", 0) is None
    assert room.take("a", -7) is None
    assert room.planned == 993


def test_a_refusal_names_the_limit_and_what_is_accepted() -> None:
    over = PodRoom(LIMITS, planned=58, by_namespace={"a": 58}).take("a", 3)
    assert over is not None
    error = over.error("/spec")
    assert (error.pointer, error.code) == ("/spec", "TooManyPods")
    assert error.detail == ("3 more pods do not fit: the jobs of the namespace a that have not ended have 58 of 60")
    assert error.accepted == "2 pods or fewer, or wait until other jobs end"


@pytest.mark.parametrize(
    ("planned", "of_a", "wanted", "is_far"),
    [
        (0, 0, {"a": 50}, True),
        (0, 0, {"a": 51}, False),
        (0, 0, {"a": 50, "b": 50, "c": 25}, True),
        (0, 0, {"a": 50, "b": 50, "c": 26}, False),
        (775, 0, {"a": 50, "b": 50}, True),
        (776, 0, {"a": 50, "b": 50}, False),
        (300, 300, {"a": 50}, True),
        (301, 301, {"a": 50}, False),
    ],
)
def test_two_writers_may_each_add_an_eighth_of_a_limit_unseen(
    planned: int, of_a: int, wanted: dict[str, int], *, is_far: bool
) -> None:
    room = PodRoom(PodLimits(installation=1000, namespace=400), planned=planned, by_namespace={"a": of_a})
    assert room.is_far_from_full(wanted, writers=2) is is_far


@given(
    limits=st.builds(PodLimits, installation=st.integers(1, 5000), namespace=st.integers(1, 5000)),
    planned=st.integers(0, 5000),
    others=st.integers(0, 5000),
    wanted=st.integers(0, 200),
    writers=st.integers(1, 8),
)
def test_pods_that_are_far_from_the_limits_fit_despite_concurrent_writers(
    limits: PodLimits, planned: int, others: int, wanted: int, writers: int
) -> None:
    room = PodRoom(limits, planned=planned + others, by_namespace={"a": planned})
    if not room.is_far_from_full({"a": wanted}, writers):
        return
    unseen = writers - 1
    for _ in range(unseen):
        room.take("a", min(share(limits.installation, writers), share(limits.namespace, writers)))
    assert room.take("a", wanted) is None
