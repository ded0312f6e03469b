"""Which pods of a gang are created, and whether they join its PodGroup."""

from typing import Any

import pytest

from app.domain.plan import GangApi, GangPlan, JobPlan, Rank, Ranks
from app.domain.reconcile.actions import CreatePod, EnsureObjects
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Replica
from app.domain.vocabulary import Outcome, ReplicaPhase
from tests.support.plans import (
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    an_attempt,
    decide,
    ended,
    restarting,
    running_status,
)

W = [Rank("worker", rank) for rank in range(4)]
GROUP = "jobgate-u-2"


def plan(api: GangApi | None = GangApi.KUBERNETES, least: int = 2) -> JobPlan:
    """Three workers, of which the job needs some."""
    gang = GangPlan(members=Ranks({"worker": range(least)}), apis=(), api=api)
    return a_plan({"worker": 3}, restart=restarting(5), gang=gang)


def created(plan: JobPlan, replicas: list[Replica], *pods: ObservedPod) -> dict[int, bool]:
    """The ranks whose pods are created, and whether they join the PodGroup."""
    decision = decide(plan, a_record(running_status() if replicas else None, *replicas), *pods)
    creates = actions_of(decision, CreatePod)
    assert bool(creates) == bool(actions_of(decision, EnsureObjects))
    return {create.key.rank: create.in_gang for create in creates}


def member(rank: int, group: str = GROUP, **more: Any) -> ObservedPod:
    return a_pod(W[rank], group=group, **more)


def new(rank: int) -> Replica:
    return a_replica(W[rank], an_attempt(2, key=W[rank], seen=False, phase=ReplicaPhase.CREATING))


RUNS = [a_replica(key) for key in W]
ROOMLESS: dict[str, Any] = {"phase": ReplicaPhase.CREATING, "node": None}


@pytest.mark.parametrize(
    ("replicas", "pods", "expected"),
    [
        pytest.param([], [], {0: True, 1: True}, id="a gang begins with what it needs"),
        pytest.param(
            [RUNS[0], RUNS[1], new(2)],
            [member(0, **ROOMLESS), member(1, **ROOMLESS)],
            {},
            id="further replicas wait until it is placed",
        ),
        pytest.param([RUNS[0], RUNS[1], new(2)], [member(0), member(1, **ROOMLESS)], {}, id="as a whole"),
        pytest.param([RUNS[0], RUNS[1], new(2)], [member(0), member(1)], {2: False}, id="and are placed by themselves"),
        pytest.param([RUNS[0], new(1), RUNS[2]], [member(0), member(2, "")], {1: True}, id="a member is replaced"),
        pytest.param([new(0), new(1), RUNS[2]], [member(2, "")], {0: True, 1: True}, id="all members are replaced"),
        pytest.param(
            [ended(W[0], Outcome.SUCCEEDED), new(1), new(2)], [], {1: False, 2: False}, id="a member has succeeded"
        ),
        pytest.param(
            [RUNS[0], new(1), new(2)], [member(0, "jobgate-u-3")], {1: False, 2: False}, id="a member of another group"
        ),
    ],
)
def test_what_is_created_and_joins(replicas: list[Replica], pods: list[ObservedPod], expected: dict[int, bool]) -> None:
    assert created(plan(), replicas, *pods) == expected


def test_without_an_api_all_are_created_at_once() -> None:
    assert created(plan(api=None), []) == {0: False, 1: False, 2: False}


def test_another_minimum_is_another_podgroup() -> None:
    """An edit may change the minimum of an elastic job, and not every API allows to change a PodGroup."""
    assert created(plan(least=3), [RUNS[0], new(1), RUNS[2]], member(0), member(2)) == {1: False}
    assert created(plan(least=3), []) == {0: True, 1: True, 2: True}
