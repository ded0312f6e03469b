"""Which pods of a gang are created, and whether they join its PodGroup."""

from typing import Any

import pytest

from app.domain.plan import GangApi, GangPlan, JobPlan, Rank, Ranks
from app.domain.reconcile.actions import CheckGroup, CreatePod, DeletePod, EnsureObjects
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Replica
from app.domain.vocabulary import Outcome, PendingCode, ReplicaPhase, StopReason
from tests.support.plans import (
    T0,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    an_attempt,
    at,
    decide,
    ended,
    pod_uid,
    restarting,
    running_status,
)

W = [Rank("worker", rank) for rank in range(4)]
GROUP, GROUP_OF_3 = "jobgate-u-2", "jobgate-u-3"
OF_VOLCANO = "podgroup-0c6f"
DAY = 86_400.0  # seconds until the deadline of a pending job


def plan(api: GangApi | None = GangApi.KUBERNETES, least: int = 2) -> JobPlan:
    """Three workers, of which the job needs some."""
    gang = GangPlan(members=Ranks({"worker": range(least)}), apis=(), api=api)
    return a_plan({"worker": 3}, restart=restarting(5), gang=gang)


def created(plan: JobPlan, replicas: list[Replica], *pods: ObservedPod, **observed: Any) -> dict[int, bool]:
    """The ranks whose pods are created, and whether they join the PodGroup."""
    decision = decide(plan, a_record(running_status() if replicas else None, *replicas), *pods, **observed)
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
            [RUNS[0], new(1), new(2)], [member(0, GROUP_OF_3)], {1: False, 2: False}, id="a member of another group"
        ),
    ],
)
def test_what_is_created_and_joins(replicas: list[Replica], pods: list[ObservedPod], expected: dict[int, bool]) -> None:
    assert created(plan(), replicas, *pods) == expected


@pytest.mark.parametrize(
    ("pods", "joins"),
    [([member(0)], False), ([member(0, deletion_deadline=T0)], True), ([member(0, **ROOMLESS)], True), ([], True)],
)
def test_a_podgroup_that_its_running_members_keep_in_deletion_is_not_awaited(
    pods: list[ObservedPod], *, joins: bool
) -> None:
    assert created(plan(), [RUNS[0], new(1)], *pods, group_deleting=True)[1] == joins


def test_a_podgroup_in_deletion_that_no_member_runs_in_is_made_again() -> None:
    found = decide(plan(), a_record(running_status(), RUNS[0], new(1)), member(0, **ROOMLESS), group_deleting=True)
    assert [action.name for action in actions_of(found, DeletePod)] == [member(0).name]
    assert [action.in_gang for action in actions_of(found, CreatePod)] == [True]


@pytest.mark.parametrize(
    ("pods", "observed", "reads"),
    [
        pytest.param([member(0, **ROOMLESS), member(1, **ROOMLESS)], {}, 1, id="the gang waits"),
        pytest.param([member(0), member(1, **ROOMLESS)], {}, 1, id="a member is replaced"),
        pytest.param([member(0), member(1)], {}, 0, id="it is placed"),
        pytest.param([member(0, ""), member(1, "", **ROOMLESS)], {}, 0, id="they are in no PodGroup"),
        pytest.param([member(0, **ROOMLESS), member(1, **ROOMLESS)], {"group_deleting": True}, 0, id="it is replaced"),
    ],
)
def test_the_podgroup_that_pods_wait_in_is_read_now_and_then(
    pods: list[ObservedPod], observed: dict[str, Any], reads: int
) -> None:
    decision = decide(plan(), a_record(running_status(), *RUNS[:2]), *pods, now=5, **observed)
    assert len(actions_of(decision, CheckGroup)) == reads
    # Not for the read: each reconcile would store another time.
    assert decision.wake_at == at(5 + DAY)


@pytest.mark.parametrize(
    ("pods", "waits"), [([member(0), member(1, **ROOMLESS)], ["worker[2]"]), ([member(0), member(1)], [])]
)
def test_what_waits_for_the_gang_says_so(pods: list[ObservedPod], waits: list[str]) -> None:
    status = decide(plan(), a_record(running_status(), RUNS[0], RUNS[1], new(2)), *pods).status
    found = [reason for reason in status.pending_reasons if reason.code is PendingCode.WAITING_FOR_GANG]
    assert [replica for reason in found for replica in reason.replicas] == waits


@pytest.mark.parametrize(
    ("least", "replicas", "pods", "stopped"),
    [
        pytest.param(3, RUNS, [member(0, GROUP_OF_3), member(1, GROUP_OF_3, **ROOMLESS)], [], id="it is whole"),
        pytest.param(
            3,
            [ended(W[0], Outcome.SUCCEEDED), *RUNS[1:]],
            [member(1, GROUP_OF_3, **ROOMLESS), member(2, GROUP_OF_3)],
            [1],
            id="a member has succeeded",
        ),
        pytest.param(
            2,
            RUNS,
            [member(rank, GROUP_OF_3, **ROOMLESS) for rank in range(3)],
            [0, 1, 2],
            id="an edit has lowered the minimum",
        ),
        pytest.param(2, RUNS, [member(0, ""), member(1, ""), member(2, "", **ROOMLESS)], [], id="pods without a group"),
        pytest.param(
            2,
            [ended(W[0], Outcome.SUCCEEDED), *RUNS[1:]],
            [member(1, OF_VOLCANO, **ROOMLESS), member(2, OF_VOLCANO, **ROOMLESS)],
            [],
            id="pods in the PodGroup that Volcano makes for pods without one",
        ),
    ],
)
def test_what_waits_for_a_gang_that_cannot_be_placed_is_replaced(
    least: int, replicas: list[Replica], pods: list[ObservedPod], stopped: list[int]
) -> None:
    decision = decide(plan(least=least), a_record(running_status(), *replicas[:3]), *pods)
    assert [action.uid for action in actions_of(decision, DeletePod)] == [pod_uid(W[rank]) for rank in stopped]
    reasons = {key.rank: replica.attempt.stopping for key, replica in decision.replicas.items()}
    assert [rank for rank, reason in reasons.items() if reason is StopReason.UNPLACEABLE] == stopped


def test_without_an_api_all_are_created_at_once() -> None:
    assert created(plan(api=None), []) == {0: False, 1: False, 2: False}


def test_another_minimum_is_another_podgroup() -> None:
    """An edit may change the minimum of an elastic job, and not every API allows to change a PodGroup."""
    assert created(plan(least=3), [RUNS[0], new(1), RUNS[2]], member(0), member(2)) == {1: False}
    assert created(plan(least=3), []) == {0: True, 1: True, 2: True}
