"""When the objects of a job are removed: after its time to live, or by a deletion."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.queueing.admission import Admitted, Queueing
from app.domain.queueing.workload_status import ObservedWorkload
from app.domain.reconcile.actions import DeletePod, RemoveObjects
from app.domain.reconcile.reconcile import reconcile
from app.domain.reconcile.timing import Timing
from app.domain.status.observed import AlteredObject, KueueState
from app.domain.vocabulary import Evidence, JobPhase, Outcome, Reason, ReplicaPhase
from tests.domain.reconcile.queues.worlds import LISTED
from tests.support.plans import (
    BOTH,
    REMOVE,
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
    inputs,
    next_record,
    pod_uid,
    running_status,
)

DONE = running_status(
    phase=JobPhase.SUCCEEDED, reason=Reason.RULE_FULFILLED, finished_at=T0, aggregate={}, observed_generation=1
)
SUCCEEDED = ended(W0, Outcome.SUCCEEDED)


@pytest.mark.parametrize(
    ("own", "default", "removed_at"),
    [
        (None, None, None),
        (None, 60.0, 60),
        (None, 0.0, 0),
        (90, 60.0, 90),
        (30, None, 30),
        (0, 60.0, 0),
    ],
)
def test_when_the_objects_of_an_ended_job_are_removed(
    own: int | None, default: float | None, removed_at: int | None
) -> None:
    plan, timing = a_plan({"worker": 1}, ttl_after_finished=own), Timing(ttl_after_finished=default)
    recorded = a_record(replace(DONE, quiet=True), SUCCEEDED)

    for now in (0, 29, 30, 59, 60, 89, 90, 10**6):
        removes = removed_at is not None and removed_at <= now
        decision = decide(plan, recorded, now=now, anchor_marked=True, timing=timing)
        assert decision.actions == ((RemoveObjects(),) if removes else ())
    # The time of the installation may change, so only that of the job is stored.
    stored = decide(plan, recorded, now=-1, anchor_marked=True, timing=timing).wake_at
    assert stored == (None if own is None else at(own))


def test_ttl_removes_the_objects_and_keeps_the_history() -> None:
    plan = a_plan({"worker": 1}, ttl_after_finished=60)
    pod = a_pod(W0, ReplicaPhase.SUCCEEDED, held=False)
    recorded = a_record(replace(DONE, quiet=True), SUCCEEDED)
    before = decide(plan, recorded, pod, now=59, anchor_marked=True)
    assert (before.wake_at, before.actions) == (at(60), ())
    due = decide(plan, recorded, pod, now=60, anchor_marked=True)
    assert due.actions == (DeletePod(name="job-worker-0", uid=pod_uid(W0)),)
    assert due.wake_at is None
    recorded = next_record(recorded, due)
    swept = decide(plan, recorded, now=61, anchor_marked=True)
    assert swept.actions == (RemoveObjects(),)
    assert not swept.status.quiet
    over = decide(plan, next_record(recorded, swept), now=62, anchor_marked=True, objects_gone=True)
    assert (over.actions, over.status.quiet, over.status.gone_at, over.wake_at) == ((), True, at(62), None)
    assert over.status.phase is JobPhase.SUCCEEDED


def test_removal_of_a_running_job_cancels_it_first() -> None:
    first = decide(a_plan(), RUNNING, *BOTH, intent=REMOVE)
    assert not first.status.phase.is_terminal
    assert len(actions_of(first, DeletePod)) == 2
    assert not actions_of(first, RemoveObjects)
    gone = frozenset({pod_uid(W0), pod_uid(W1)})
    second = decide(a_plan(), next_record(RUNNING, first), intent=REMOVE, gone=gone)
    assert second.status.phase is JobPhase.CANCELLED
    assert second.actions == (RemoveObjects(),)


def test_no_object_is_removed_while_a_pod_may_exist() -> None:
    recorded = a_record(DONE, SUCCEEDED, a_replica(W1, an_attempt(key=W1)))
    assert not actions_of(decide(a_plan(), recorded, intent=REMOVE), RemoveObjects)


ALTERED = AlteredObject(api_version="v1", kind="Pod", name="job-worker-1", uid="u", finalizers=(), message="altered")
FINISHED = ObservedWorkload(uid="w", verdict=Admitted(pod_sets={}), finished=True, held=False)


@pytest.mark.parametrize(
    "left",
    [
        {"pods": (a_pod(W0, ReplicaPhase.SUCCEEDED, held=False),)},
        {"altered": (ALTERED,)},
        {"queue": replace(LISTED, workloads={0: FINISHED})},
        {"queue": replace(LISTED, state=KueueState.UNKNOWN)},
    ],
    ids=["a pod", "an altered pod", "a Workload", "an unread Workload"],
)
def test_the_anchor_is_removed_after_what_it_owns(left: dict[str, Any]) -> None:
    plan, recorded = a_plan({"worker": 1}), a_record(replace(DONE, queueing=Queueing(name="team")), SUCCEEDED)
    found = inputs(plan, recorded, intent=REMOVE, queue=LISTED)
    assert RemoveObjects() in reconcile(found).actions
    assert RemoveObjects() not in reconcile(replace(found, observed=replace(found.observed, **left))).actions


def test_an_ended_job_is_not_quiet_before_all_evidence_is_stored() -> None:
    due = replace(SUCCEEDED, attempt=replace(SUCCEEDED.attempt, evidence=Evidence.NONE))
    plan, recorded = a_plan({"worker": 1}), a_record(DONE, due)
    assert not decide(plan, recorded, a_pod(W0, ReplicaPhase.SUCCEEDED, held=False), anchor_marked=True).status.quiet
    assert not actions_of(decide(plan, recorded, intent=REMOVE), RemoveObjects)
