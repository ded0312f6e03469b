"""The pod of a replica whose main container has ended, and whose other containers run on."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.domain.reconcile.actions import CaptureEvidence, CreatePod, DeletePod, ReleasePod
from app.domain.reconcile.values import Decision
from app.domain.status.observed import ObservedContainer, ObservedPod
from app.domain.status.records import Recorded
from app.domain.vocabulary import Evidence, JobPhase, Outcome, ReplicaPhase
from tests.support.plans import (
    T0,
    W0,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    decide,
    next_record,
    restarting,
    running_status,
)

ONE = a_plan({"worker": 1})
CONTAINERS = (
    ObservedContainer(name="train", state="terminated", exit_code=0, started_at=T0, finished_at=T0),
    ObservedContainer(name="proxy", state="running", started_at=T0),
)


def lingering(phase: ReplicaPhase = ReplicaPhase.SUCCEEDED, code: int = 0, **more: Any) -> ObservedPod:
    return a_pod(W0, phase, ended=True, lingering=True, exit_code=code, containers=CONTAINERS, **more)


def captured(recorded: Recorded, decision: Decision) -> Recorded:
    """The record after the decision and the capture that it asks for."""
    (capture,) = actions_of(decision, CaptureEvidence)
    assert capture.containers == ("train", "proxy")
    assert actions_of(decision, DeletePod, ReleasePod) == []
    return after_capture(next_record(recorded, decision))


def after_capture(recorded: Recorded) -> Recorded:
    replica = recorded.replicas[W0]
    kept = replace(replica, attempt=replace(replica.attempt, evidence=Evidence.CAPTURED))
    return replace(recorded, replicas={W0: kept})


def test_a_success_counts_although_the_deletion_kills_the_other_containers() -> None:
    recorded = a_record(running_status(), a_replica())
    decision = decide(ONE, recorded, lingering())
    assert decision.replicas[W0].attempt.outcome is Outcome.SUCCEEDED
    recorded = captured(recorded, decision)
    # Its end is on record and its logs are stored before the pod is deleted. The finalizer stays while processes run.
    decision = decide(ONE, recorded, lingering())
    assert [action.uid for action in actions_of(decision, DeletePod)] == ["worker0-1"]
    assert actions_of(decision, ReleasePod) == []
    recorded = next_record(recorded, decision)
    terminating = a_pod(W0, ReplicaPhase.RUNNING, deletion_deadline=T0 + timedelta(seconds=30))
    decision = decide(ONE, recorded, terminating)
    assert actions_of(decision, DeletePod, ReleasePod) == []
    assert not decision.status.quiet
    recorded = next_record(recorded, decision)
    killed = a_pod(W0, ReplicaPhase.FAILED, exit_code=137, deletion_deadline=T0 + timedelta(seconds=30))
    decision = decide(ONE, recorded, killed)
    assert decision.status.phase is JobPhase.SUCCEEDED
    assert decision.replicas[W0].attempt.outcome is Outcome.SUCCEEDED
    assert len(actions_of(decision, ReleasePod)) == 1


@pytest.mark.parametrize("limit", [0, 1])
def test_a_failure_restarts_the_replica_within_its_limit(limit: int) -> None:
    plan = a_plan({"worker": 1}, restart=restarting(limit))
    recorded = a_record(running_status(), a_replica())
    pod = lingering(ReplicaPhase.FAILED, 3, finished_at=T0)
    recorded = captured(recorded, decide(plan, recorded, pod))
    decision = decide(plan, recorded, pod)
    replica = decision.replicas[W0]
    assert (replica.attempt.number, replica.restarts) == (1 + limit, limit)
    assert len(actions_of(decision, DeletePod)) == 1
    # The next attempt begins when the name is free.
    recorded = next_record(recorded, decision)
    terminating = a_pod(W0, ReplicaPhase.RUNNING, deletion_deadline=T0 + timedelta(seconds=30))
    assert actions_of(decide(plan, recorded, terminating, now=100), CreatePod) == []
    assert len(actions_of(decide(plan, recorded, now=100), CreatePod)) == limit
