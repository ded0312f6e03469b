"""Replicas that the clean-up policy keeps after the end of their job."""

from dataclasses import replace

import pytest

from app.domain.reconcile.actions import DeletePod
from app.domain.status.leftovers import shown_message
from app.domain.status.records import Intent
from app.domain.vocabulary import CleanUpPolicy, JobPhase, Outcome, Reason, StopReason
from app.domain.vocabulary import ReplicaPhase as P
from tests.support.plans import (
    T0,
    W0,
    W1,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    an_attempt,
    decide,
    ended,
    pod_uid,
    running_status,
)

DONE = running_status(
    phase=JobPhase.SUCCEEDED, reason=Reason.RULE_FULFILLED, finished_at=T0, aggregate={}, observed_generation=1
)
SUCCEEDED = ended(W0, Outcome.SUCCEEDED)


@pytest.mark.parametrize(
    ("phase", "cancel", "stopped", "message"),
    [
        (P.RUNNING, False, None, "; 1 replica of this job still runs"),
        (P.UNKNOWN, False, None, "; 1 replica of this job still runs"),
        (P.PENDING, False, StopReason.CLEAN_UP, ""),
        (P.CREATING, False, StopReason.CLEAN_UP, ""),
        (P.RUNNING, True, StopReason.CANCEL, ""),
        (P.PENDING, True, StopReason.CANCEL, ""),
    ],
)
def test_a_replica_that_runs_after_the_end_is_reported_and_cancelled_and_one_that_never_started_is_stopped(
    phase: P, *, cancel: bool, stopped: StopReason | None, message: str
) -> None:
    recorded = a_record(replace(DONE, message="done"), SUCCEEDED, a_replica(W1, an_attempt(key=W1, phase=phase)))
    pods = a_pod(W0, P.SUCCEEDED, held=False), a_pod(W1, phase)
    intent = Intent(generation=1, cancel=cancel)
    decision = decide(a_plan(clean_up=CleanUpPolicy.NONE), recorded, *pods, intent=intent)
    assert decision.replicas[W1].attempt.stopping is stopped
    assert [action.uid for action in actions_of(decision, DeletePod)] == ([pod_uid(W1)] if stopped else [])
    assert decision.status.phase is JobPhase.SUCCEEDED
    assert shown_message(decision.status) == f"done{message}"
    assert decision.status.still_running == bool(message)
    assert not decision.status.quiet
