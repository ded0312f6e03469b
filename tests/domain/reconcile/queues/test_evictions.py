"""What is recorded of an eviction."""

from datetime import timedelta

from app.domain.queueing.admission import Queueing
from tests.domain.reconcile.queues.worlds import TEAM, a_world, counted_evictions, kueue_of, run
from tests.support.plans import a_plan


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
