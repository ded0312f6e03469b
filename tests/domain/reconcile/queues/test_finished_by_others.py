"""Kueue never admits a finished Workload again, so a job whose Workload another client finishes gets another one."""

from dataclasses import replace

from app.domain.vocabulary import JobPhase
from tests.domain.reconcile.queues.worlds import TEAM, a_world, kueue_of, phase_of, run
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
    world.plan = replace(world.plan, identity=replace(world.plan.identity, generation=2))
    run(world)
    assert (phase_of(world), kueue.made) == (JobPhase.QUEUED, 2)
