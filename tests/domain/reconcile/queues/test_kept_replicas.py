"""The replicas that the clean-up policy of an ended job keeps running hold quota, until Kueue requires it."""

from collections.abc import Callable

import pytest

from app.domain.plan import FinishRule, Rank
from app.domain.reconcile.actions import DeletePod
from app.domain.vocabulary import CleanUpPolicy, JobPhase, Quantifier, RuleOutcome
from tests.domain.reconcile.queues.worlds import (
    TEAM,
    a_world,
    counted_evictions,
    elastic,
    end,
    kueue_of,
    phase_of,
    rest,
    run,
)
from tests.support.model.cluster import World
from tests.support.model.kueue import ModelKueue
from tests.support.plans import W0, a_plan, actions_of, an_elastic_plan

PS = Rank("ps", 0)
OF_FIRST = FinishRule(name="r", outcome=RuleOutcome.SUCCESS, quantifier=Quantifier.ALL, ranks=frozenset({W0}))


def an_ended_world(*, size: int = 2, admit: bool = True) -> tuple[World, ModelKueue]:
    """A job that has succeeded with its first worker, while all other replicas run. It was scaled up from two."""
    world = a_world(elastic(a_plan({"ps": 1, "worker": 2}, [OF_FIRST], queue=TEAM, clean_up=CleanUpPolicy.NONE)))
    run(world)
    kueue_of(world).admit()
    run(world)
    if size > 2:
        world.plan = an_elastic_plan(world.plan, "worker", size)
        run(world)
        if admit:
            kueue_of(world).admit()
        run(world)
    end(world, W0)
    assert phase_of(world) == JobPhase.SUCCEEDED
    return world, kueue_of(world)


def test_quota_of_the_replicas_that_have_ended_is_given_back() -> None:
    world, kueue = an_ended_world()
    assert kueue.total() == {"ps": 1, "worker": 1}
    assert world.recorded.status.still_running == 2
    end(world, PS)
    assert kueue.total() == {"ps": 0, "worker": 1}
    end(world, Rank("worker", 1))
    assert kueue.workload is not None
    assert (kueue.workload.finished, kueue.workload.held) == (True, False)
    assert world.recorded.status.quiet


def test_they_count_as_ready_although_the_job_ended_when_its_last_replica_started() -> None:
    world = a_world(a_plan({"ps": 1, "worker": 2}, [OF_FIRST], queue=TEAM, clean_up=CleanUpPolicy.NONE))
    run(world)
    kueue_of(world).admit()
    for _ in range(3):
        world.reconcile()
    for pod in world.pods.values():
        for _ in range(3 if pod.key == W0 else 2):
            world.kubelet(pod)
    rest(world)
    assert phase_of(world) == JobPhase.SUCCEEDED
    workload = kueue_of(world).workload
    assert workload is not None
    assert (workload.ready, workload.finished) == (True, False)


@pytest.mark.parametrize(
    "requires",
    [
        ModelKueue.evict,
        lambda kueue: kueue.set_active(active=False),
        ModelKueue.delete,
    ],
)
def test_an_eviction_stops_them(requires: Callable[[ModelKueue], None]) -> None:
    world, kueue = an_ended_world()
    counted = counted_evictions(world)
    requires(kueue)
    decision = world.reconcile()
    assert {action.name for action in actions_of(decision, DeletePod)} == {"job-ps-0", "job-worker-1"}
    rest(world)
    assert not world.running()
    assert (phase_of(world), world.recorded.status.still_running) == (JobPhase.SUCCEEDED, 0)
    assert all(workload.finished for workload in kueue.workloads.values())
    assert len(counted) == 1
    assert world.recorded.status.quiet


def test_the_eviction_of_a_scale_up_stops_only_its_own() -> None:
    world, kueue = an_ended_world(size=3)
    kueue.evict(index=1)
    rest(world)
    assert world.running() == {"job-ps-0", "job-worker-1"}
    assert kueue.workloads[1].finished
    assert kueue.total() == {"ps": 1, "worker": 1}


def test_a_scale_up_that_waits_when_the_job_ends_leaves_its_queue() -> None:
    _, kueue = an_ended_world(size=3, admit=False)
    assert kueue.workloads[1].finished
    assert (kueue.workloads[1].reserved, kueue.total()) == (False, {"ps": 1, "worker": 1})
