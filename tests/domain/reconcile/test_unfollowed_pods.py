"""Pods that have lost the labels of their job, so that the watch does not deliver them."""

import pytest

from app.domain.reconcile.actions import ConfirmGone
from app.domain.status.observed import ObservedPod
from app.domain.vocabulary import ReplicaPhase
from tests.support.plans import (
    W0,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    at,
    decide,
    pod_uid,
    running_status,
)

P = ReplicaPhase


@pytest.mark.parametrize(
    ("pod", "read"),
    [
        (a_pod(followed=False), True),
        (a_pod(phase=P.FAILED, exit_code=3, followed=False), True),  # it is held, and released later
        (a_pod(phase=P.FAILED, exit_code=3, followed=False, held=False), False),
        (a_pod(phase=P.FAILED, exit_code=3, followed=False, held=False, deletion_deadline=at(30)), True),
        (a_pod(), False),
    ],
)
def test_a_pod_that_the_watch_does_not_deliver_is_read_until_it_can_change_nothing(
    pod: ObservedPod, *, read: bool
) -> None:
    decision = decide(a_plan({"worker": 1}), a_record(running_status(), a_replica()), pod)
    assert actions_of(decision, ConfirmGone) == ([ConfirmGone(name=pod.name, uid=pod_uid(W0))] if read else [])
    assert (decision.wake_at == at(10)) == read
