"""A job that pauses gives its queue back with its Workload, and a job that ends is not queued."""

from dataclasses import replace

import pytest

from app.domain.plan import Rank
from app.domain.queueing.admission import Queueing
from app.domain.queueing.workload_status import ObservedWorkload, Unadmitted
from app.domain.reconcile.queues.permit import Permit, derive_permit
from app.domain.status.observed import KueueState, ObservedQueue
from app.domain.status.records import Intent, JobStatus
from app.domain.vocabulary import JobPhase, PendingCode
from tests.domain.reconcile.queues.worlds import LISTED, TEAM, a_world, end, kueue_of, phase_of, rest, run
from tests.support.model.stories import start
from tests.support.plans import REMOVE, W0, a_plan, a_record, inputs, running_status

QUEUED = Queueing(name="team")
LEFT = ObservedWorkload(uid="w", queue="team", verdict=Unadmitted(code=PendingCode.WAITING_FOR_QUOTA, message="m"))
WITH_WORKLOAD = replace(LISTED, workloads={0: LEFT})


@pytest.mark.parametrize(
    ("known", "queue", "expected"),
    [
        (None, WITH_WORKLOAD, None),
        (QUEUED, LISTED, None),
        (QUEUED, replace(LISTED, state=KueueState.UNKNOWN), QUEUED),
        (QUEUED, WITH_WORKLOAD, QUEUED),
        (replace(QUEUED, deactivated=True), WITH_WORKLOAD, QUEUED),
    ],
)
def test_a_paused_job_keeps_its_queue_until_its_workload_is_gone(
    known: Queueing | None, queue: ObservedQueue, expected: Queueing | None
) -> None:
    recorded = a_record(JobStatus(phase=JobPhase.PAUSED, queueing=known))
    assert derive_permit(inputs(a_plan(queue=TEAM, paused=True), recorded, queue=queue)) == Permit(record=expected)


@pytest.mark.parametrize(
    ("status", "intent"),
    [
        (JobStatus(), Intent(generation=1, cancel=True)),
        (JobStatus(), REMOVE),
        (running_status(phase=JobPhase.FAILED), Intent(generation=1)),
    ],
    ids=["cancelled", "removed", "ended"],
)
def test_a_job_that_ends_is_not_queued(status: JobStatus, intent: Intent) -> None:
    assert derive_permit(inputs(a_plan(queue=TEAM), a_record(status), intent=intent, queue=LISTED)) == Permit()


@pytest.mark.parametrize("knows", [True, False])
def test_a_resumed_job_requests_quota_only_for_the_replicas_that_have_not_ended(*, knows: bool) -> None:
    """Kueue may admit the new Workload before it `knows` of the ended replicas."""
    world = a_world(a_plan({"worker": 3}, queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    end(world, W0)
    world.set_paused(paused=True)
    rest(world)
    assert (kueue.workloads, phase_of(world)) == ({}, JobPhase.PAUSED)
    world.set_paused(paused=False)
    while not kueue.workloads:
        world.reconcile()
    if knows:
        rest(world)
        assert (kueue.workloads[0].reclaimable, phase_of(world)) == ({"worker": 1}, JobPhase.QUEUED)
    kueue.admit()
    assert kueue.total() == {"worker": 2 if knows else 3}
    rest(world)
    running = {pod.key.rank for pod in world.pods.values() if not pod.ended}
    assert (phase_of(world), running, kueue.total()) == (JobPhase.RUNNING, {1, 2}, {"worker": 2})


def test_a_waiting_workload_has_no_pod_set_without_pods() -> None:
    world = a_world(a_plan({"ps": 1, "worker": 2}, queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    end(world, Rank("ps", 0))
    assert kueue.workloads[0].reclaimable == {"ps": 1}
    kueue.evict()
    rest(world)
    assert (kueue.workloads[0].reclaimable, phase_of(world)) == ({}, JobPhase.QUEUED)
    kueue.admit()
    rest(world)
    assert (kueue.total(), phase_of(world), kueue.made) == ({"ps": 0, "worker": 2}, JobPhase.RUNNING, 1)


def test_quota_that_another_client_has_reclaimed_is_recorded_and_not_taken_back() -> None:
    world = a_world(a_plan({"worker": 3}, queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    kueue.workloads[0].reclaimable = {"worker": 1}
    assert not world.reconcile().actions
    queueing = world.recorded.status.queueing
    assert queueing is not None
    assert queueing.reclaimed == {"worker": 1}


def test_an_evicted_job_says_which_replicas_have_ended_in_the_write_that_gives_its_quota_back() -> None:
    world = a_world(a_plan({"worker": 3}, queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    end(world, W0)
    kueue.evict()
    while not kueue.returns:
        world.reconcile()
        start(world)
    kueue.admit()
    assert kueue.workloads[0].admitted == {"worker": 2}
