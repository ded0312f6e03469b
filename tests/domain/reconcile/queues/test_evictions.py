"""What is recorded of an eviction."""

from datetime import timedelta

import pytest

from app.domain.queueing.admission import Queueing
from app.domain.status.observed import KueueState
from app.domain.vocabulary import JobPhase
from tests.domain.reconcile.queues.worlds import TEAM, a_world, counted_evictions, elastic, kueue_of, phase_of, run
from tests.support.plans import a_plan, an_elastic_plan


def test_a_deactivation_is_one_eviction_although_kueue_writes_its_message_later() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    counted = counted_evictions(world)

    def reconcile() -> Queueing:
        world.now += timedelta(seconds=1)
        queueing = world.reconcile().status.queueing
        assert queueing is not None
        return queueing

    assert kueue.workload is not None
    kueue.workload.active = False
    before = reconcile()
    kueue.evict("Deactivated")
    after = reconcile()
    assert (before.evicted_because, after.evicted_because) == ("the Workload of the job is deactivated", "said Kueue")
    assert after.evicted_at == before.evicted_at
    assert counted == ["Deactivated"]


@pytest.mark.parametrize("reason", ["Preempted", "Deactivated"])
def test_an_eviction_goes_on_while_kueue_cannot_be_read(reason: str) -> None:
    world = a_world(a_plan({"worker": 2}, queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    if reason == "Deactivated":
        kueue.set_active(active=False)
    kueue.evict(reason)
    world.reconcile()
    kueue.state = KueueState.UNKNOWN
    run(world)
    phase = JobPhase.PAUSED if reason == "Deactivated" else JobPhase.QUEUED
    assert (world.running(), phase_of(world), kueue.returns) == (set(), phase, 0)
    kueue.state = KueueState.LISTED
    run(world)
    assert (world.running(), phase_of(world), kueue.returns) == (set(), phase, 1)


def test_the_eviction_of_a_scale_up_goes_on_while_kueue_cannot_be_read() -> None:
    world = a_world(elastic(a_plan({"worker": 2}, queue=TEAM)))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    world.plan = an_elastic_plan(world.plan, "worker", 4)
    run(world)
    kueue.admit()
    run(world)
    assert len(world.running()) == 4
    kueue.evict(index=1)
    world.reconcile()
    kueue.state = KueueState.UNKNOWN
    run(world)
    assert len(world.running()) == 2
    kueue.state = KueueState.LISTED
    run(world)
    assert (len(world.running()), kueue.total()) == (2, {"worker": 2})
    kueue.admit()
    run(world)
    assert len(world.running()) == 4
