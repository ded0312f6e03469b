"""Edits of the queue and of the priority reach a job that waits, and not one that has its quota."""

from dataclasses import replace

from app.domain.plan import PriorityClassKind, PriorityClassRef, QueuePlan
from app.domain.vocabulary import JobPhase
from tests.domain.reconcile.queues.worlds import TEAM, a_world, kueue_of, phase_of, run
from tests.support.plans import a_plan


def test_an_edit_of_the_queue_moves_a_waiting_job() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    world.plan = replace(world.plan, queue=QueuePlan(name="other"))
    run(world)
    assert kueue.workload is not None
    assert world.recorded.status.queueing is not None
    assert (kueue.workload.queue, kueue.made, world.recorded.status.queueing.name) == ("other", 2, "other")
    kueue.admit()
    run(world)
    world.plan = replace(world.plan, queue=TEAM)
    run(world)
    assert (kueue.workload.queue, phase_of(world)) == ("other", JobPhase.RUNNING)
    kueue.evict()
    run(world)
    assert (kueue.workload.queue, phase_of(world)) == ("team", JobPhase.QUEUED)
    world.plan = replace(world.plan, queue=None)
    run(world)
    assert (kueue.workload.queue, kueue.made) == ("team", 3)


def test_a_workload_that_is_admitted_in_the_queue_before_an_edit_is_made_again() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    assert kueue.workload is not None
    kueue.workload.queue = "other"
    kueue.admit()
    run(world)
    assert (kueue.workload.queue, kueue.made, phase_of(world)) == ("team", 2, JobPhase.QUEUED)


def test_an_edit_of_the_class_changes_the_priority_of_a_waiting_job() -> None:
    high, low = (PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name=name) for name in ("high", "low"))
    world = a_world(a_plan(queue=TEAM))
    run(world)
    kueue = kueue_of(world)
    workload = kueue.workload
    assert workload is not None
    for requested in (high, low, None, high):
        world.plan = replace(world.plan, priority=requested)
        run(world)
        assert workload.priority == requested
    kueue.admit()
    run(world)
    world.plan = replace(world.plan, priority=low)
    run(world)
    assert workload.priority == high
    kueue.evict()
    run(world)
    assert workload.priority == low
