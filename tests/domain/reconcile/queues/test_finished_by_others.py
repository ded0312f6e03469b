"""Workloads that other clients finish or delete: the job gets another one, unless it is deactivated."""

import pytest

from app.domain.vocabulary import JobPhase, Reason
from tests.domain.reconcile.queues.worlds import TEAM, a_world, kueue_of, phase_of, run
from tests.support.model.stories import edit
from tests.support.plans import a_plan


def test_a_workload_that_another_client_finishes_is_made_again() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    for made in (2, 3):
        assert kueue.workload is not None
        kueue.workload.finished = True  # first of a job that waits, then of one that runs
        run(world)
        assert (phase_of(world), world.pods, kueue.made) == (JobPhase.QUEUED, {}, made)
        kueue.admit()
        run(world)
        assert phase_of(world) == JobPhase.RUNNING


def test_a_deactivated_workload_that_another_client_finishes_stays() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.set_active(active=False)
    assert kueue.workload is not None
    kueue.workload.finished = True
    run(world)
    assert (phase_of(world), kueue.made, kueue.workload.active) == (JobPhase.PAUSED, 1, False)
    edit(world, "resume")
    run(world)
    assert (phase_of(world), kueue.made) == (JobPhase.QUEUED, 2)


@pytest.mark.parametrize(
    ("is_running", "message"), [(False, "the Workload of the job is deactivated"), (True, "said Kueue")]
)
def test_a_job_whose_deactivated_workload_is_deleted_stays_paused(*, is_running: bool, message: str) -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    if is_running:
        kueue.admit()
        run(world)
    kueue.set_active(active=False)
    if not is_running:
        run(world)
    kueue.delete()
    run(world)
    status = world.recorded.status
    assert (status.phase, status.reason, status.message) == (JobPhase.PAUSED, Reason.DEACTIVATED, message)
    assert (kueue.workloads, world.pods) == ({}, {})
    world.restart_controller()
    edit(world, "resume")
    run(world)
    assert (phase_of(world), kueue.made) == (JobPhase.QUEUED, 2)
