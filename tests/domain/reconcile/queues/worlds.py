"""Worlds of one job with a queue, in which the test plays Kueue."""

from dataclasses import replace

import pytest

from app.domain.plan import JobPlan, QueuePlan, Rank
from app.domain.reconcile.values import Decision, Inputs
from app.domain.status.milestones import evictions
from app.domain.status.observed import KueueState, ObservedQueue
from tests.support.model.cluster import World
from tests.support.model.kueue import ModelKueue
from tests.support.model.reconcile_checks import check_reconcile
from tests.support.model.stories import start

TEAM = QueuePlan(name="team")
LISTED = ObservedQueue(state=KueueState.LISTED)


def a_world(plan: JobPlan) -> World:
    return World(plan=plan, check=check_reconcile, kueue=ModelKueue())


def elastic(plan: JobPlan) -> JobPlan:
    """Return the plan with tasks that can be scaled."""
    return replace(plan, tasks=tuple(replace(task, elastic=True) for task in plan.tasks))


def run(world: World) -> None:
    """Reconcile until nothing changes. No process exits, and Kueue decides nothing."""
    for _ in range(50):
        decision = world.reconcile()
        if not (start(world) or decision.dirty or decision.actions or decision.again):
            return
    pytest.fail(f"the job never comes to rest: {world.recorded.status}")


def end(world: World, key: Rank) -> None:
    """Let the process of a replica exit with 0, and reconcile."""
    world.kubelet(next(pod for pod in world.pods.values() if pod.key == key))
    rest(world)


def rest(world: World) -> None:
    """Reconcile more often than any step needs. Ended pods remain, so nothing else says that the job rests."""
    for _ in range(20):
        world.reconcile()
        start(world)


def kueue_of(world: World) -> ModelKueue:
    assert world.kueue is not None
    return world.kueue


def phase_of(world: World) -> str:
    return world.recorded.status.phase.value


def counted_evictions(world: World) -> list[str]:
    """The reasons that the metric of evictions counts from now on."""
    found: list[str] = []
    check = world.check

    def count(world: World, inputs: Inputs, decision: Decision) -> None:
        check(world, inputs, decision)
        found.extend(evictions(world.recorded.status, decision.status))

    world.check = count
    return found
