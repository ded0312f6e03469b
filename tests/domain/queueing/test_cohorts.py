"""What ClusterQueues of a cohort can use: the examples of Kueue's documentation of cohorts, and its formulas."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.queueing import ClusterQueue, Cohort
from app.domain.queueing.cohorts import CohortShare, QuotaKey, cohort_shares

CPU = QuotaKey("x", "cpu")


def a_cluster_queue(name: str, nominal: int, used: int, cohort: str = "all", **limits: int) -> ClusterQueue:
    resource = {"name": "cpu", "nominalQuota": nominal, **limits}
    reservation = [{"name": "x", "resources": [{"name": "cpu", "total": used}]}]
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {"cohortName": cohort, "resourceGroups": [{"flavors": [{"name": "x", "resources": [resource]}]}]},
        "status": {"flavorsReservation": reservation},
    }
    return msgspec.convert(body, ClusterQueue)


def a_cohort(name: str, parent: str = "", nominal: int | None = None, **limits: int) -> Cohort:
    resources = [] if nominal is None else [{"name": "cpu", "nominalQuota": nominal, **limits}]
    spec = {"parentName": parent, "resourceGroups": [{"flavors": [{"name": "x", "resources": resources}]}]}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, Cohort)


@pytest.mark.parametrize(
    ("queues", "free", "most"),
    [
        # Alone in its cohort, a queue has its own quota.
        ([a_cluster_queue("a", 4, 1)], 3, 4),
        ([a_cluster_queue("a", 4, 1), a_cluster_queue("b", 9, 2)], 10, 13),
        # Others have borrowed what is its own.
        ([a_cluster_queue("a", 4, 0), a_cluster_queue("b", 9, 12)], 1, 13),
        ([a_cluster_queue("a", 4, 0), a_cluster_queue("b", 9, 15)], 0, 13),
        ([a_cluster_queue("a", 4, 1, borrowingLimit=3), a_cluster_queue("b", 9, 2)], 6, 7),
        ([a_cluster_queue("a", 4, 7, borrowingLimit=3), a_cluster_queue("b", 9, 2)], 0, 7),
        ([a_cluster_queue("a", 4, 1, borrowingLimit=0), a_cluster_queue("b", 9, 2)], 3, 4),
        ([a_cluster_queue("a", 4, 1, borrowingLimit=3), a_cluster_queue("b", 9, 9)], 3, 7),
        # It has what it does not lend, whatever others use.
        ([a_cluster_queue("a", 4, 0, lendingLimit=1), a_cluster_queue("b", 9, 10)], 3, 13),
        ([a_cluster_queue("a", 4, 0, lendingLimit=0), a_cluster_queue("b", 9, 0)], 13, 13),
        ([a_cluster_queue("a", 4, 1), a_cluster_queue("b", 9, 2, lendingLimit=3)], 6, 7),
        # What b uses of its own is not taken from the pool.
        ([a_cluster_queue("a", 4, 1), a_cluster_queue("b", 9, 8, lendingLimit=3)], 4, 7),
        ([a_cluster_queue("a", 4, 1, lendingLimit=9), a_cluster_queue("b", 9, 2)], 10, 13),
        ([a_cluster_queue("a", 0, 0), a_cluster_queue("b", 9, 2)], 7, 9),
        (
            [a_cluster_queue("a", 4, 1), a_cluster_queue("b", 9, 2, cohort="other"), a_cluster_queue("c", 9, 0, "")],
            3,
            4,
        ),
    ],
)
def test_a_queue_has_its_own_quota_and_what_others_lend(queues: list[ClusterQueue], free: int, most: int) -> None:
    assert cohort_shares(queues, ())["a"] == {CPU: CohortShare(free=Decimal(free), most=Decimal(most))}


def test_a_queue_without_a_cohort_has_no_share() -> None:
    assert cohort_shares([a_cluster_queue("a", 4, 1, "")], [a_cohort("", nominal=3)]) == {}


A, B = a_cluster_queue("a", 4, 1, "left"), a_cluster_queue("b", 9, 2, "right")


@pytest.mark.parametrize(
    ("queues", "cohorts", "free", "most"),
    [
        # The quota of a Cohort is for all below it.
        ([A], [a_cohort("left", nominal=5)], 8, 9),
        ([a_cluster_queue("a", 4, 7, "left")], [a_cohort("left", nominal=5)], 2, 9),
        ([a_cluster_queue("a", 0, 2, "left"), a_cluster_queue("c", 1, 2, "left")], [a_cohort("left", nominal=5)], 2, 6),
        ([a_cluster_queue("a", 4, 1, "left", borrowingLimit=2)], [a_cohort("left", nominal=5)], 5, 6),
        # Cohorts of one parent lend each other; the parent exists as an object, or is only named.
        ([A, B], [a_cohort("left", "top"), a_cohort("right", "top")], 10, 13),
        ([A, B], [a_cohort("left", "top"), a_cohort("right", "top"), a_cohort("top", nominal=3)], 13, 16),
        ([A, B], [a_cohort("left", "right")], 10, 13),
        ([A, B], [a_cohort("left", "top"), a_cohort("right")], 3, 4),
        # Others below the parent have borrowed.
        ([A, a_cluster_queue("b", 9, 12, "right")], [a_cohort("left", "right")], 0, 13),
        # The limits of a Cohort are those of all below it.
        ([A, B], [a_cohort("left", "top", 0, borrowingLimit=2), a_cohort("right", "top")], 5, 6),
        ([A, B], [a_cohort("left", "top", 1, borrowingLimit=2), a_cohort("right", "top")], 6, 7),
        ([A, B], [a_cohort("left", "top"), a_cohort("right", "top", 0, lendingLimit=3)], 6, 7),
        ([A, B], [a_cohort("left", "top"), a_cohort("right", "top", 0, lendingLimit=0)], 3, 4),
        (
            [a_cluster_queue("a", 4, 1, "left", lendingLimit=1), B],
            [a_cohort("left", "right", 0, lendingLimit=0)],
            10,
            13,
        ),
        # Others have borrowed more than there is.
        (
            [a_cluster_queue("a", 4, 1, "left"), a_cluster_queue("b", 9, 13, "right")],
            [a_cohort("left", "top", 2, lendingLimit=1), a_cohort("right", "top")],
            1,
            15,
        ),
        # Three levels.
        ([A, B], [a_cohort("left", "middle"), a_cohort("middle", "top", 1), a_cohort("right", "top", 2)], 13, 16),
        # A quota for what no ClusterQueue below has.
        ([A], [a_cohort("left", "top"), a_cohort("top"), a_cohort("other", "top", 7)], 10, 11),
    ],
)
def test_cohorts_have_quota_of_their_own_and_parents(
    queues: list[ClusterQueue], cohorts: list[Cohort], free: int, most: int
) -> None:
    assert cohort_shares(queues, cohorts)["a"] == {CPU: CohortShare(free=Decimal(free), most=Decimal(most))}


@pytest.mark.parametrize(
    "cohorts",
    [
        [a_cohort("left", "left")],
        [a_cohort("left", "top"), a_cohort("top", "left")],
        [a_cohort("left", "top"), a_cohort("top", "more"), a_cohort("more", "top")],
    ],
)
def test_queues_below_a_cycle_have_no_share(cohorts: list[Cohort]) -> None:
    found = cohort_shares([A, B], cohorts)
    assert list(found) == ["b"]
    assert found["b"] == {CPU: CohortShare(free=Decimal(7), most=Decimal(9))}
