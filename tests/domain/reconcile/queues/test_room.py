"""A job without room within the limit of live pods waits: it has no pods and no Workload."""

import pytest

from app.domain.reconcile.actions import CreatePod, EnsureWorkload
from app.domain.reservations.pod_limits import RoomWait
from app.domain.status.observed import ObservedQueue
from app.domain.status.records import Intent
from app.domain.vocabulary import JobPhase, PendingCode
from tests.domain.reconcile.queues.worlds import LISTED, TEAM
from tests.support.plans import a_plan, a_record, actions_of, decide, next_record


@pytest.mark.parametrize("queue", [ObservedQueue(), LISTED])
def test_a_job_without_room_waits_before_its_queue(queue: ObservedQueue) -> None:
    plan = a_plan(queue=TEAM)
    wait = RoomWait(pods=2, planned=8, limit=8, before=("other",))
    decision = decide(plan, queue=queue, room_wait=wait)
    status = decision.status
    assert decision.actions == ()
    assert (status.phase, status.reason, status.pending_since) == (JobPhase.QUEUED, "WaitingForPodLimit", None)
    assert [(reason.code, reason.message, reason.count) for reason in status.pending_reasons] == [
        (PendingCode.WAITING_FOR_POD_LIMIT, wait.message, 2)
    ]
    assert not decide(plan, next_record(a_record(), decision), queue=queue, room_wait=wait, now=60).dirty
    has_room = decide(plan, next_record(a_record(), decision), queue=queue)
    assert actions_of(has_room, EnsureWorkload if queue is LISTED else CreatePod)


def test_a_job_without_room_can_be_paused_and_cancelled() -> None:
    wait = RoomWait(pods=2, planned=8, limit=8)
    paused = decide(a_plan(paused=True), room_wait=wait)
    assert paused.status.phase is JobPhase.PAUSED
    record = next_record(a_record(), paused)
    resumed = decide(a_plan(), record, room_wait=wait)
    assert resumed.status.phase is JobPhase.RESUMING
    again = decide(a_plan(), next_record(record, resumed), room_wait=wait)
    assert (again.status.reason, actions_of(again, CreatePod)) == ("WaitingForPodLimit", [])
    cancel = Intent(generation=1, cancel=True)
    cancelling = decide(a_plan(), a_record(), intent=cancel, room_wait=wait)
    cancelled = decide(a_plan(), next_record(a_record(), cancelling), intent=cancel, room_wait=wait)
    assert cancelled.status.phase is JobPhase.CANCELLED
