"""One replica's life: what its pod's end means, what restart limits allow, and that a recorded end stays."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import pytest

from app.domain.plan import RetryableExits
from app.domain.reconcile.lifecycle import NO_POD, NODE_LOST_WARNING, RestartLimits, settle, track
from app.domain.reconcile.timing import Timing
from app.domain.status.failures import failure_of
from app.domain.status.observed import ObservedContainer, ObservedPod
from app.domain.status.records import Attempt, JobStatus, Replica, Transition
from app.domain.usage.holds import Hold
from app.domain.vocabulary import (
    Evidence,
    JobPhase,
    Outcome,
    Reason,
    ReplicaPhase,
    RestartPolicy,
    RestartScope,
    StopReason,
)
from tests.support.plans import (
    T0,
    W0,
    W1,
    a_pod,
    a_record,
    a_replica,
    an_attempt,
    at,
    ended,
    pod_uid,
    restarting,
    running_status,
)

P = ReplicaPhase
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("attempt", "pod", "outcome", "phase", "reason"),
    [
        ({}, a_pod(), None, P.RUNNING, None),
        ({}, a_pod(phase=P.SUCCEEDED), Outcome.SUCCEEDED, P.SUCCEEDED, None),
        ({}, a_pod(phase=P.FAILED, exit_code=1, reason="Error"), Outcome.FAILED, P.FAILED, "Error"),
        ({}, a_pod(phase=P.FAILED, disruption="Evicted"), Outcome.DISRUPTED, P.DELETED, "Evicted"),
        ({}, a_pod(phase=P.FAILED, deletion_deadline=T0), Outcome.DISRUPTED, P.DELETED, "PodDeleted"),
        ({}, a_pod(phase=P.SUCCEEDED, deletion_deadline=T0), Outcome.SUCCEEDED, P.SUCCEEDED, None),
        ({}, a_pod(phase=P.CREATING, ended=True, deletion_deadline=T0), Outcome.DISRUPTED, P.DELETED, "PodDeleted"),
        ({"stopping": StopReason.PAUSE}, a_pod(phase=P.FAILED), Outcome.STOPPED, P.DELETED, "Paused"),
        ({"stopping": StopReason.PAUSE}, a_pod(phase=P.SUCCEEDED), Outcome.STOPPED, P.DELETED, "Paused"),
        ({"stopping": StopReason.PAUSE}, a_pod(deletion_deadline=T0), None, P.RUNNING, None),
        ({"message": NODE_LOST_WARNING, "reason": "NodeLost"}, a_pod(phase=P.UNKNOWN), None, P.UNKNOWN, "NodeLost"),
        (
            {"message": NODE_LOST_WARNING},
            a_pod(phase=P.UNKNOWN, ended=True, deletion_deadline=T0),
            Outcome.DISRUPTED,
            P.DELETED,
            "NodeLost",
        ),
    ],
)
def test_an_attempt_follows_its_pod(
    attempt: dict[str, Any], pod: ObservedPod, outcome: Outcome | None, phase: ReplicaPhase, reason: str | None
) -> None:
    found = track(a_replica(attempt=an_attempt(**attempt)), [pod], NONE).attempt
    assert (found.outcome, found.phase, found.reason) == (outcome, phase, reason)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("phase", [P.SUCCEEDED, P.FAILED, P.RUNNING])
def test_a_recorded_end_never_changes(outcome: Outcome, phase: ReplicaPhase) -> None:
    replica = ended(W0, outcome)
    assert track(replica, [a_pod(phase=phase, exit_code=9)], frozenset({"worker0-1"})) == replica


@pytest.mark.parametrize(
    ("attempt", "gone", "outcome", "reason"),
    [
        ({}, NONE, None, None),
        ({}, {"worker0-1"}, Outcome.DISRUPTED, "PodVanished"),
        ({"stopping": StopReason.CANCEL}, {"worker0-1"}, Outcome.STOPPED, "Cancelled"),
        ({"message": NODE_LOST_WARNING}, {"worker0-1"}, Outcome.DISRUPTED, "NodeLost"),
        ({"seen": False}, {"worker0-1"}, None, None),
    ],
)
def test_a_pod_that_the_mirror_lacks_has_vanished_only_after_confirmation(
    attempt: dict[str, Any], gone: set[str], outcome: Outcome | None, reason: str | None
) -> None:
    found = track(a_replica(attempt=an_attempt(**attempt)), [], frozenset(gone)).attempt
    assert (found.outcome, found.reason) == (outcome, reason)
    assert (found.evidence is Evidence.UNAVAILABLE) is (outcome is not None)


def test_an_attempt_keeps_what_no_pod_shows() -> None:
    kept: dict[str, Any] = {
        "number": 3,
        "stopping": StopReason.PAUSE,
        "evidence": Evidence.CAPTURED,
        "evidence_reason": "a reason",
        "last_lines": ("the end",),
        "hold": Hold(since=1, requests={"pods": 1}),
    }
    shown: dict[str, Any] = {
        "pod_uid": pod_uid(W0, 3),
        "phase": P.PENDING,
        "node": "n1",
        "pod_ip": "10.0.0.1",
        "created_at": T0,
        "started_at": at(1),
        "exit_code": 0,
        "reason": "Waiting",
        "message": "a message",
        "containers": (ObservedContainer(name="main", state="waiting"),),
    }
    pod = a_pod(attempt=3, **{name: value for name, value in shown.items() if name != "pod_uid"})
    assert track(a_replica(attempt=Attempt(**kept)), [pod], NONE).attempt == Attempt(**kept, **shown)
    assert {*kept, *shown, "outcome", "finished_at"} == {field.name for field in fields(Attempt)}


def test_a_pod_that_shows_nothing_new_leaves_its_replica_as_it_is() -> None:
    replica = track(a_replica(), [a_pod()], NONE)
    assert track(replica, [a_pod()], NONE) is replica


def test_an_attempt_follows_only_its_recorded_pod() -> None:
    other = a_pod(uid="other", phase=P.FAILED)
    assert track(a_replica(), [other], NONE) == a_replica()
    assert track(a_replica(), [a_pod(attempt=2, phase=P.FAILED)], NONE) == a_replica()
    unseen = a_replica(attempt=an_attempt(seen=False))
    assert track(unseen, [other], NONE).attempt.pod_uid == "other"


def test_the_pod_of_a_late_create_is_recorded_with_its_ended_attempt() -> None:
    given_up = Attempt(
        number=1,
        outcome=Outcome.STOPPED,
        phase=P.DELETED,
        evidence=Evidence.UNAVAILABLE,
        evidence_reason=NO_POD,
    )
    found = track(a_replica(attempt=given_up), [a_pod()], NONE).attempt
    assert (found.pod_uid, found.outcome, found.phase) == ("worker0-1", Outcome.STOPPED, P.DELETED)
    assert (found.evidence, found.evidence_reason) == (Evidence.NONE, None)


@pytest.mark.parametrize(
    ("policy", "limit", "outcome", "restarts", "settled"),
    [
        (RestartPolicy.NEVER, 5, Outcome.FAILED, 0, True),
        (RestartPolicy.NEVER, 5, Outcome.SUCCEEDED, 0, True),
        (RestartPolicy.ON_FAILURE, 0, Outcome.FAILED, 0, True),
        (RestartPolicy.ON_FAILURE, 2, Outcome.FAILED, 0, False),
        (RestartPolicy.ON_FAILURE, 2, Outcome.FAILED, 1, False),
        (RestartPolicy.ON_FAILURE, 2, Outcome.FAILED, 2, True),
        (RestartPolicy.ON_FAILURE, None, Outcome.FAILED, 999, False),
        (RestartPolicy.ON_FAILURE, 2, Outcome.SUCCEEDED, 0, True),
        (RestartPolicy.ALWAYS, 2, Outcome.SUCCEEDED, 1, False),
        (RestartPolicy.ALWAYS, 2, Outcome.SUCCEEDED, 2, True),
        (RestartPolicy.ALWAYS, 0, Outcome.SUCCEEDED, 0, True),
        (RestartPolicy.ALWAYS, None, Outcome.FAILED, 999, False),
        (RestartPolicy.ALWAYS, 2, Outcome.STOPPED, 2, False),
        (RestartPolicy.NEVER, 0, Outcome.DISRUPTED, 0, False),
    ],
)
def test_policies_and_limits(
    policy: RestartPolicy, limit: int | None, outcome: Outcome, restarts: int, *, settled: bool
) -> None:
    replica = ended(W0, outcome, settled=False, restarts=restarts)
    plan = restarting(limit, policy)
    assert settle(replica, plan, before(replica), Timing()).settled is settled


@pytest.mark.parametrize(("disruptions", "settled"), [(0, False), (2, False), (3, True)])
def test_disruptions_have_a_limit_of_their_own(disruptions: int, *, settled: bool) -> None:
    replica = ended(W0, Outcome.DISRUPTED, settled=False, disruptions=disruptions, restarts=7)
    plan = restarting(0, RestartPolicy.NEVER)
    assert settle(replica, plan, before(replica), Timing(disruption_limit=3)).settled is settled


def before(*replicas: Replica, status: JobStatus | None = None) -> RestartLimits:
    """The restart limits of a reconcile that finds these replicas ended, which ran when they were last recorded."""
    ran = [replace(one, attempt=replace(one.attempt, outcome=None)) for one in replicas]
    return RestartLimits(a_record(status or running_status(), *ran))


@pytest.mark.parametrize(
    ("scope", "restarts_of_the_job", "settled", "charged"),
    [
        (RestartScope.REPLICA, 9, [False, False], True),
        (RestartScope.JOB, 0, [False, False], True),
        (RestartScope.JOB, 1, [True, True], False),
    ],
)
def test_replicas_that_fail_together_are_one_restart_of_the_job(
    scope: RestartScope, restarts_of_the_job: int, settled: list[bool], *, charged: bool
) -> None:
    replicas = [ended(key, Outcome.FAILED, settled=False) for key in (W0, W1)]
    limits = before(*replicas, status=running_status(restarts=restarts_of_the_job))
    plan = restarting(1, scope=scope)
    assert [settle(replica, plan, limits, Timing()).settled for replica in replicas] == settled
    assert limits.charged is charged


@pytest.mark.parametrize("phase", [JobPhase.CREATING, JobPhase.PENDING, JobPhase.RESTARTING])
@pytest.mark.parametrize("created_at", [at(9), at(10), at(11)], ids=["old", "just now", "new"])
@pytest.mark.parametrize(
    ("reason", "restored_at", "restarts", "joins"),
    [
        (Reason.RESTARTING, None, 0, True),
        (Reason.RESTARTING, at(9), 0, True),  # that was an earlier restart
        (Reason.RESTARTING, at(12), 0, False),
        (Reason.RESTARTING, None, 1, False),  # it has failed in this restart before
        (Reason.DISRUPTED, None, 0, False),
    ],
)
def test_a_replica_that_fails_before_all_have_pods_again_belongs_to_the_restart(
    phase: JobPhase, created_at: datetime, reason: str, restored_at: datetime | None, restarts: int, *, joins: bool
) -> None:
    replica = a_replica(W1, an_attempt(key=W1, outcome=Outcome.FAILED, created_at=created_at), restarts=restarts)
    since = Transition(at=at(10), phase=phase, reason=reason, message="")
    status = running_status(phase=phase, reason=reason, restarts=1, transitions=(since,), restored_at=restored_at)
    for limit, settled in ((1, not joins), (2, False)):
        limits = before(replica, status=status)
        assert settle(replica, restarting(limit, scope=RestartScope.JOB), limits, Timing()).settled is settled
        assert limits.charged is (limit == 2 and not joins)


@pytest.mark.parametrize("phase", [JobPhase.SCALING, JobPhase.RESUMING])
@pytest.mark.parametrize(
    ("outcome", "seen", "joins"),
    [(Outcome.FAILED, False, True), (Outcome.FAILED, True, False), (Outcome.DISRUPTED, False, False)],
)
def test_a_resize_or_resume_does_not_hide_a_restart(
    phase: JobPhase, outcome: Outcome, *, seen: bool, joins: bool
) -> None:
    """The other replica has failed and waits for its next pod."""
    lost = failure_of(W0, an_attempt(outcome=outcome))
    status = running_status(phase=phase, reason=phase, restarts=1, crashed=(lost,))
    failed = ended(W1, Outcome.FAILED, settled=False)
    ran = replace(failed, attempt=replace(failed.attempt, outcome=None))
    other = a_replica(W0, an_attempt(2, seen=seen, phase=P.CREATING), restarts=1)
    limits = RestartLimits(a_record(status, ran, other))
    assert settle(failed, restarting(1, scope=RestartScope.JOB), limits, Timing()).settled is not joins


def test_a_restart_that_was_granted_is_neither_charged_nor_refused_again() -> None:
    replica = ended(W0, Outcome.FAILED, settled=False)
    limits = RestartLimits(a_record(running_status(restarts=1), replica))
    assert not settle(replica, restarting(1, scope=RestartScope.JOB), limits, Timing()).settled
    assert not limits.charged


@pytest.mark.parametrize(
    ("containers", "settled"),
    [
        ([], False),
        ([{"name": "other", "exit_code": 1, "message": "no"}], False),
        ([{"name": "main"}], False),
        ([{"name": "main", "exit_code": 1, "message": "no"}], True),
        ([{"name": "main", "exit_code": 127, "message": "no"}], True),
        ([{"name": "main", "exit_code": 0, "message": ""}], True),
        ([{"name": "main", "exit_code": 128, "message": "no"}], False),
        ([{"name": "main", "exit_code": 137, "message": "no"}], False),
        ([{"name": "main", "exit_code": 1, "message": ""}], False),
        ([{"name": "main", "exit_code": 137, "message": "", "reason": "OOMKilled"}], True),
        ([{"name": "main", "exit_code": 1, "init": True}, {"name": "main", "exit_code": 2, "message": "no"}], True),
    ],
)
def test_only_retryable_exits_are_retried(containers: list[dict[str, Any]], *, settled: bool) -> None:
    seen = tuple(ObservedContainer(state="terminated", **container) for container in containers)
    replica = a_replica(W0, an_attempt(outcome=Outcome.FAILED, containers=seen))
    plan = restarting(None, retryable=RetryableExits(container="main", least_code=128))
    assert settle(replica, plan, before(replica), Timing()).settled is settled


@pytest.mark.parametrize(("earlier", "seconds"), [(0, 10), (1, 20), (5, 320), (6, 360), (10_000, 360)])
def test_back_off_doubles_up_to_its_end(earlier: int, seconds: float) -> None:
    assert T0 + Timing().backoff(earlier) == at(seconds)


@pytest.mark.parametrize(("earlier", "seconds"), [(0, 0), (1, 10), (2, 20)])
def test_the_first_disruption_is_replaced_without_back_off(earlier: int, seconds: float) -> None:
    assert T0 + Timing().disruption_backoff(earlier) == at(seconds)
