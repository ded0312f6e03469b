"""Pods that Kueue gates, and pods that wait for nodes or admissions which they cannot get."""

import pytest

from app.domain.kubernetes.topology import LevelValues, PodCounts, TopologyAssignment, TopologySlice
from app.domain.queueing.admission import PodSetAdmission, Queueing, TaskAdmission
from app.domain.reconcile.actions import DeletePod, UngatePod
from app.domain.status.observed import KueueState, ObservedPod, ObservedQueue
from app.domain.vocabulary import ReplicaPhase, StopReason
from tests.domain.reconcile.queues.worlds import TEAM
from tests.support.plans import (
    T0,
    W0,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    decide,
    running_status,
)


@pytest.mark.parametrize(
    ("nodes", "node", "is_replaced"), [({"host": "a"}, None, True), ({"host": "b"}, None, False), ({}, "n1", False)]
)
def test_a_pod_that_waits_for_a_replaced_node_is_replaced(
    nodes: dict[str, str], node: str | None, *, is_replaced: bool
) -> None:
    values = LevelValues(universal="b")
    domain = TopologySlice(domain_count=1, pod_counts=PodCounts(universal=1), values_per_level=(values,))
    topology = TopologyAssignment(levels=("host",), slices=(domain,))
    admission = TaskAdmission(pod_set="worker", size=1, pods=PodSetAdmission(topology=topology))
    queueing = Queueing(name="team", admission={"worker": admission})
    pod = a_pod(phase=ReplicaPhase.CREATING, node=node, wanted_nodes=nodes)
    recorded = a_record(running_status(queueing=queueing), a_replica(W0))
    decision = decide(a_plan({"worker": 1}, queue=TEAM), recorded, pod, queue=ObservedQueue(state=KueueState.UNKNOWN))
    assert bool(actions_of(decision, DeletePod)) is is_replaced
    stopped = decision.replicas[W0].attempt.stopping
    assert stopped == (StopReason.UNPLACEABLE if is_replaced else None)


def test_gates_of_kueue_are_removed_from_the_pods_of_an_admitted_job() -> None:
    pod = a_pod(gated=True)
    for queueing, gates in ((None, []), (Queueing(name="team", admission={}), [UngatePod(name=pod.name, uid=pod.uid)])):
        recorded = a_record(running_status(queueing=queueing), a_replica(W0))
        decision = decide(a_plan({"worker": 1}), recorded, pod, queue=ObservedQueue(state=KueueState.UNKNOWN))
        assert actions_of(decision, UngatePod) == gates


@pytest.mark.parametrize(
    ("pod", "is_replaced", "is_released"),
    [
        pytest.param(a_pod(phase=ReplicaPhase.CREATING, gated=True, captured=True), True, False, id="it waits"),
        pytest.param(
            a_pod(phase=ReplicaPhase.CREATING, gated=True, captured=True, deletion_deadline=T0),
            False,
            True,
            id="leaves",
        ),
        pytest.param(a_pod(gated=True, captured=True, node="n1"), False, False, id="Kueue has admitted it"),
    ],
)
def test_a_pod_that_kueue_has_captured_is_replaced(pod: ObservedPod, *, is_replaced: bool, is_released: bool) -> None:
    admission = {"worker": TaskAdmission(pod_set="worker", size=1, pods=PodSetAdmission())}
    recorded = a_record(running_status(queueing=Queueing(name="team", admission=admission)), a_replica(W0))
    decision = decide(a_plan({"worker": 1}, queue=TEAM), recorded, pod, queue=ObservedQueue(state=KueueState.UNKNOWN))
    assert bool(actions_of(decision, DeletePod)) is is_replaced
    assert bool(actions_of(decision, UngatePod)) is is_released


@pytest.mark.parametrize(
    ("pod", "is_released"),
    [
        pytest.param(a_pod(gated=True), False, id="it waits for the admission"),
        pytest.param(a_pod(gated=True, deletion_deadline=T0), True, id="it is being deleted"),
        pytest.param(a_pod(W0, ReplicaPhase.FAILED, gated=True), True, id="it has ended"),
    ],
)
def test_gates_do_not_hold_the_pods_of_a_job_that_is_not_admitted(pod: ObservedPod, *, is_released: bool) -> None:
    recorded = a_record(running_status(queueing=Queueing(name="team")), a_replica(W0))
    decision = decide(a_plan({"worker": 1}, queue=TEAM), recorded, pod, queue=ObservedQueue(state=KueueState.UNKNOWN))
    assert bool(actions_of(decision, UngatePod)) is is_released
