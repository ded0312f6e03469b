"""What ClusterQueues of a cohort can use: the examples of Kueue's documentation of cohorts, and its formulas."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.queueing import ClusterQueue
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
    assert cohort_shares(queues)["a"] == {CPU: CohortShare(free=Decimal(free), most=Decimal(most))}


def test_a_queue_without_a_cohort_has_no_share() -> None:
    assert cohort_shares([a_cluster_queue("a", 4, 1, "")]) == {}
