"""Pause takes every pod away without charge, resume brings back what had not succeeded; cancel is final."""

from dataclasses import replace

import pytest

from app.domain.access.actors import Actor
from app.domain.plan import JobPlan
from app.domain.reconcile.actions import CaptureEvidence, ConfirmGone, CreatePod, DeletePod, ReleasePod
from app.domain.reconcile.lifecycle import NO_POD
from app.domain.status.observed import ClusterRefusal, RefusalVerdict
from app.domain.status.records import Attempt, Intent
from app.domain.vocabulary import (
    ConditionType,
    Evidence,
    JobPhase,
    Outcome,
    PendingCode,
    Reason,
    ReplicaPhase,
    StopReason,
)
from tests.support.model.cluster import World
from tests.support.model.reconcile_checks import check_reconcile
from tests.support.plans import (
    RUNNING,
    T0,
    W0,
    W1,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    an_attempt,
    at,
    decide,
    ended,
    failure,
    next_record,
    pod_uid,
    restarting,
    running_status,
    success,
)

PAUSED = a_plan(paused=True)
CANCEL = Intent(generation=1, cancel=True, cancel_actor=Actor("ann"), cancel_reason="no use")


def test_pause_is_recorded_before_the_pods_go() -> None:
    decision = decide(PAUSED, RUNNING, a_pod(W0), a_pod(W1))
    assert [replica.attempt.stopping for replica in decision.changed] == [StopReason.PAUSE, StopReason.PAUSE]
    assert actions_of(decision, DeletePod) == [
        DeletePod(name="job-worker-0", uid=pod_uid(W0)),
        DeletePod(name="job-worker-1", uid=pod_uid(W1)),
    ]
    assert (decision.status.phase, decision.status.reason) == (JobPhase.RUNNING, Reason.PAUSING)
    assert decision.status.message == "2 pods are still terminating"


def test_pause_marks_a_pod_that_the_mirror_lacks_as_stopping() -> None:
    decision = decide(PAUSED, a_record(running_status(), a_replica(W0)), a_pod(W1))
    assert decision.replicas[W0].attempt.stopping is StopReason.PAUSE
    assert actions_of(decision, ConfirmGone) == [ConfirmGone(name="job-worker-0", uid=pod_uid(W0))]
    assert decision.status.reason == Reason.PAUSING
    back = decide(
        replace(PAUSED, rules=(failure("worker0"),)),
        next_record(RUNNING, decision),
        a_pod(W0, ReplicaPhase.FAILED, exit_code=1),
    )
    assert back.replicas[W0].attempt.outcome is Outcome.STOPPED
    assert not back.status.phase.is_terminal


@pytest.mark.parametrize("phase", [ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED])
def test_an_exit_after_pause_was_recorded_fires_no_rule(phase: ReplicaPhase) -> None:
    plan = a_plan(rules=[success("worker0"), failure("worker0")], paused=True)
    decision = decide(plan, RUNNING, a_pod(W0), a_pod(W1))
    decision = decide(plan, next_record(RUNNING, decision), a_pod(W0, phase, deletion_deadline=at(30)), a_pod(W1))
    assert decision.replicas[W0].attempt.outcome is Outcome.STOPPED
    assert decision.replicas[W0].phase is ReplicaPhase.DELETED
    assert not decision.status.phase.is_terminal
    assert actions_of(decision, CaptureEvidence)[0].pod_uid == pod_uid(W0)
    assert not actions_of(decision, ReleasePod)


def test_an_end_before_the_pause_was_recorded_counts() -> None:
    decision = decide(a_plan(rules=[success("worker0")], paused=True), RUNNING, a_pod(W0, ReplicaPhase.SUCCEEDED))
    assert decision.status.phase is JobPhase.SUCCEEDED


def test_pause_deletes_ended_pods_after_their_evidence_is_stored() -> None:
    recorded = a_record(running_status(), ended(W0, Outcome.SUCCEEDED), ended(W1, Outcome.STOPPED, settled=False))
    decision = decide(PAUSED, recorded, a_pod(W0, ReplicaPhase.SUCCEEDED))
    assert actions_of(decision, DeletePod, ReleasePod) == [
        DeletePod(name="job-worker-0", uid=pod_uid(W0)),
        ReleasePod(name="job-worker-0", uid=pod_uid(W0)),
    ]
    assert decision.status.reason == Reason.PAUSING
    decision = decide(PAUSED, next_record(recorded, decision))
    assert (decision.status.phase, decision.status.reason) == (JobPhase.PAUSED, Reason.PAUSED)
    assert decision.status.aggregate[ReplicaPhase.SUCCEEDED] == 1
    assert decision.status.aggregate[ReplicaPhase.DELETED] == 1


def test_a_job_created_paused_has_no_pods_until_it_is_resumed() -> None:
    world = World(plan=PAUSED, check=check_reconcile)
    world.reconcile()
    status = world.recorded.status
    assert (status.phase, status.aggregate[ReplicaPhase.DELETED]) == (JobPhase.PAUSED, 2)
    assert [condition.type for condition in status.conditions] == [ConditionType.PAUSED]
    assert not world.pods
    assert not world.anchor
    world.plan = a_plan()
    assert world.reconcile().again
    assert (world.recorded.status.phase, world.recorded.status.resumes) == (JobPhase.RESUMING, 1)
    world.reconcile()
    assert {pod.attempt for pod in world.pods.values()} == {1}


def test_resume_restarts_unfinished_replicas_without_charging_restarts() -> None:
    stopped = ended(W1, Outcome.STOPPED, settled=False, restarts=1, disruptions=2)
    paused = running_status(phase=JobPhase.PAUSED, reason=Reason.PAUSED)
    recorded = a_record(paused, ended(W0, Outcome.SUCCEEDED), stopped)
    first = decide(recorded=recorded)
    assert (first.status.phase, first.status.resumes, first.again) == (JobPhase.RESUMING, 1, True)
    assert not first.actions
    assert not first.changed
    second = decide(recorded=next_record(recorded, first))
    assert second.changed == (
        a_replica(W1, an_attempt(2, seen=False, phase=ReplicaPhase.CREATING), restarts=1, disruptions=2),
    )
    assert second.history[0].message == "worker[1] comes back as attempt 2"
    assert second.again
    third = decide(recorded=next_record(recorded, second))
    assert actions_of(third, CreatePod) == [CreatePod(key=W1, attempt=2)]


def test_resume_while_pausing_waits_for_the_names() -> None:
    world = World(plan=a_plan({"worker": 1}), check=check_reconcile)
    for _ in range(2):
        world.reconcile()
        for pod in world.pods.values():
            world.kubelet(pod)
    world.plan = replace(world.plan, paused=True)
    world.reconcile()
    world.plan = replace(world.plan, paused=False)
    for _ in range(3):
        world.reconcile()
    (pod,) = world.pods.values()
    assert (pod.attempt, pod.deleting) == (1, True)
    assert world.recorded.status.phase is JobPhase.RESUMING
    world.kubelet(pod)
    for _ in range(4):
        world.reconcile()
    (pod,) = world.pods.values()
    assert (pod.attempt, pod.deleting) == (2, False)
    assert world.recorded.replicas[W0].restarts == 0


def test_pause_ends_an_attempt_without_a_pod_and_its_number_is_not_reused() -> None:
    creating = an_attempt(seen=False, phase=ReplicaPhase.CREATING)
    decision = decide(a_plan({"worker": 1}, paused=True), a_record(running_status(), a_replica(W0, creating)))
    attempt = decision.replicas[W0].attempt
    assert (attempt.outcome, attempt.evidence) == (Outcome.STOPPED, Evidence.UNAVAILABLE)
    assert decision.ended == ((W0, attempt),)
    assert decision.status.phase is JobPhase.PAUSED
    late = decide(a_plan({"worker": 1}, paused=True), next_record(RUNNING, decision), a_pod(W0))
    assert actions_of(late, DeletePod) == [DeletePod(name="job-worker-0", uid=pod_uid(W0))]
    assert (late.status.phase, late.status.reason) == (JobPhase.PAUSED, Reason.PAUSING)


@pytest.mark.parametrize(
    ("plan", "intent", "reason"),
    [
        (a_plan({"worker": 1}, paused=True), Intent(generation=1), StopReason.PAUSE),
        (a_plan({"worker": 1}), CANCEL, StopReason.CANCEL),
        (a_plan({"worker": 1}), Intent(generation=1, cancel=True, remove=True), StopReason.REMOVE),
    ],
)
def test_an_attempt_that_never_had_a_pod_says_so_and_why_it_was_stopped(
    plan: JobPlan, intent: Intent, reason: StopReason
) -> None:
    creating = an_attempt(seen=False, phase=ReplicaPhase.CREATING)
    decision = decide(plan, a_record(running_status(), a_replica(W0, creating)), intent=intent)
    assert decision.replicas[W0].attempt == Attempt(
        number=1,
        phase=ReplicaPhase.DELETED,
        outcome=Outcome.STOPPED,
        stopping=reason,
        reason=reason,
        evidence=Evidence.UNAVAILABLE,
        evidence_reason=NO_POD,
    )


def test_the_evidence_of_a_late_pod_is_stored_before_it_is_released() -> None:
    plan = a_plan({"worker": 1}, paused=True)
    creating = a_replica(W0, an_attempt(seen=False, phase=ReplicaPhase.CREATING))
    record = next_record(RUNNING, decide(plan, a_record(running_status(), creating)))
    ended_pod = a_pod(W0, ReplicaPhase.FAILED, held=True, deletion_deadline=T0)
    late = decide(plan, record, ended_pod)
    assert [action.pod_uid for action in actions_of(late, CaptureEvidence)] == [pod_uid(W0)]
    assert not actions_of(late, ReleasePod)
    stopped = late.replicas[W0]
    stored = replace(stopped, attempt=replace(stopped.attempt, evidence=Evidence.CAPTURED))
    after = decide(plan, a_record(late.status, stored), ended_pod)
    assert [action.uid for action in actions_of(after, ReleasePod)] == [pod_uid(W0)]


def test_cancel_stops_all_pods_and_names_its_actor() -> None:
    first = decide(a_plan(), RUNNING, a_pod(W0), a_pod(W1), intent=CANCEL)
    assert first.status.reason == Reason.CANCELLING
    assert [action.uid for action in actions_of(first, DeletePod)] == [pod_uid(W0), pod_uid(W1)]
    gone = frozenset({pod_uid(W0), pod_uid(W1)})
    second = decide(a_plan(), next_record(RUNNING, first), intent=CANCEL, gone=gone)
    assert (second.status.phase, second.status.message) == (JobPhase.CANCELLED, "cancelled by ann: no use")
    assert second.history[-1].actor == CANCEL.cancel_actor
    assert second.status.finished_at == T0


def test_cancel_of_a_job_that_never_had_a_pod() -> None:
    refusal = ClusterRefusal(verdict=RefusalVerdict.RETRY, code=PendingCode.QUOTA_EXCEEDED, message="quota", since=T0)
    recorded = a_record()
    for expected in (JobPhase.QUEUED, JobPhase.CANCELLED):
        decision = decide(a_plan(), recorded, intent=CANCEL, refusals={W0: refusal})
        assert decision.status.phase is expected
        assert not actions_of(decision, CreatePod)
        assert decision.again
        recorded = next_record(recorded, decision)
    assert recorded.status.aggregate[ReplicaPhase.DELETED] == 2


def test_cancel_of_a_paused_job_and_pause_of_a_cancelled_one() -> None:
    stopped = [ended(key, Outcome.STOPPED, settled=False) for key in (W0, W1)]
    recorded = a_record(running_status(phase=JobPhase.PAUSED, reason=Reason.PAUSED), *stopped)
    assert decide(PAUSED, recorded, intent=CANCEL).status.phase is JobPhase.CANCELLED
    both = decide(PAUSED, RUNNING, a_pod(W0), a_pod(W1), intent=CANCEL)
    assert both.status.reason == Reason.CANCELLING
    assert both.replicas[W0].attempt.stopping is StopReason.CANCEL


def test_a_failure_before_a_pause_is_charged_after_the_resume() -> None:
    plan = a_plan({"worker": 1}, restart=restarting(1))
    paused = running_status(phase=JobPhase.PAUSED, reason=Reason.PAUSED)
    recorded = a_record(paused, ended(W0, Outcome.FAILED, settled=False))
    for _ in range(2):
        recorded = next_record(recorded, decide(plan, recorded, now=60))
    assert recorded.replicas[W0].restarts == 1
    assert recorded.replicas[W0].attempt.number == 2
