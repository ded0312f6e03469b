"""Ends that do not come from rules alone: deadlines, refusals, debug mode; then clean-up, TTL and removal."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.reconcile.actions import CreatePod, DeletePod, EnsureObjects, MarkAnchor, ReleasePod
from app.domain.reconcile.timing import Timing
from app.domain.reconcile.values import Decision
from app.domain.status.observed import ClusterRefusal, PendingReason, RefusalVerdict
from app.domain.status.records import Intent, JobPendingReason, JobStatus, Recorded, Replica
from app.domain.vocabulary import (
    CleanUpPolicy,
    ConditionType,
    JobPhase,
    Outcome,
    PendingCode,
    Reason,
    ReplicaPhase,
    StopReason,
)
from tests.support.plans import (
    BOTH,
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
    by_rank,
    decide,
    ended,
    failure,
    next_record,
    pod_uid,
    running_status,
    success,
)

P = ReplicaPhase
CREATING = a_replica(W0, an_attempt(seen=False, phase=P.CREATING))


def refusal(verdict: RefusalVerdict, code: str) -> ClusterRefusal:
    return ClusterRefusal(verdict=verdict, code=code, message="the cluster's words", since=T0)


# Deadlines


@pytest.mark.parametrize(("now", "phase"), [(99, JobPhase.RUNNING), (100, JobPhase.TIMED_OUT)])
def test_the_active_deadline_counts_from_the_start(now: float, phase: JobPhase) -> None:
    decision = decide(a_plan(active_deadline=100), RUNNING, *BOTH, now=now)
    assert decision.status.phase is phase
    if phase is JobPhase.RUNNING:
        assert decision.wake_at == at(100)
        return
    assert decision.status.reason == Reason.DEADLINE_EXCEEDED
    assert decision.status.finished_at == at(100)
    assert len(actions_of(decision, DeletePod)) == 2
    conditions = {condition.type: condition.status for condition in decision.status.conditions}
    assert conditions[ConditionType.FAILED] == "True"
    assert conditions[ConditionType.COMPLETED] == "False"


def test_a_paused_job_is_not_active() -> None:
    """As in Kubernetes, where suspending a Job stops its deadline and resuming starts it anew."""
    plan = a_plan(active_deadline=100, paused=True)
    gone = frozenset({pod_uid(W0), pod_uid(W1)})
    paused = next_record(RUNNING, decide(plan, RUNNING, now=50, gone=gone))
    assert (paused.status.phase, paused.status.active_since) == (JobPhase.PAUSED, None)
    later = decide(plan, paused, now=500)
    assert (later.status.phase, later.wake_at) == (JobPhase.PAUSED, None)


def test_the_active_deadline_does_not_end_a_job_that_is_being_cancelled() -> None:
    cancel = Intent(generation=1, cancel=True)
    decision = decide(a_plan(active_deadline=100), RUNNING, *BOTH, now=200, intent=cancel)
    assert decision.status.reason == Reason.CANCELLING
    assert decision.wake_at is None


def test_the_pending_deadline_names_the_pending_reasons() -> None:
    why = JobPendingReason(
        code="Unschedulable", message="0/3 nodes are available", since=T0, replicas=("worker[0]",), count=1
    )
    status = JobStatus(phase=JobPhase.PENDING, pending_since=T0, pending_reasons=(why,))
    recorded = a_record(status, a_replica(W0, an_attempt(phase=P.CREATING)))
    plan = a_plan({"worker": 1}, pending_deadline=60)
    words = PendingReason(code=PendingCode.UNSCHEDULABLE, message="0/3 nodes are available")
    pod = a_pod(phase=P.CREATING, pending=words)
    assert decide(plan, recorded, pod, now=59).wake_at == at(60)
    decision = decide(plan, recorded, pod, now=60)
    assert (decision.status.phase, decision.status.reason) == (JobPhase.FAILED, Reason.PENDING_DEADLINE_EXCEEDED)
    assert decision.status.message == (
        "the job has been pending for more than 60 s: worker[0]: Unschedulable: 0/3 nodes are available"
    )


QUOTA = JobPendingReason(code="QuotaExceeded", message="pods=1", since=T0, replicas=("worker[1]",), count=1)
MANY = JobPendingReason(
    code="Volume", message="no volume", since=T0, replicas=tuple(f"ps[{rank}]" for rank in range(20)), count=30
)


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ((), "worker[1]: no reason is known"),
        ((QUOTA,), "worker[1]: QuotaExceeded: pods=1"),
        ((MANY,), "ps[0], ps[1], ps[2], ps[3], ps[4] and 25 more: Volume: no volume"),
        (
            (QUOTA, QUOTA, QUOTA, QUOTA, QUOTA),
            "; ".join(["worker[1]: QuotaExceeded: pods=1"] * 3) + "; and 2 more reasons",
        ),
    ],
)
def test_the_pending_deadline_names_the_waiting_replicas(reasons: tuple[JobPendingReason, ...], words: str) -> None:
    """One of two workers runs: it is no reason to wait for ever for the other."""
    status = JobStatus(phase=JobPhase.PENDING, pending_since=T0, pending_reasons=reasons)
    waiting = a_replica(W1, an_attempt(key=W1, seen=False, phase=P.CREATING))
    decision = decide(a_plan(), a_record(status, a_replica(W0), waiting), a_pod(W0), now=86_400)
    assert (decision.status.phase, decision.status.reason) == (JobPhase.FAILED, Reason.PENDING_DEADLINE_EXCEEDED)
    assert decision.status.message == f"the job has been pending for more than 86400 s: {words}"


@pytest.mark.parametrize(
    ("of_job", "of_installation", "ends_after"),
    [
        (None, 86_400.0, 86_400),
        (None, None, None),
        (60, 86_400.0, 60),
        (60, None, 60),
        (172_800, 86_400.0, 172_800),
        (0, 86_400.0, None),
    ],
)
def test_the_pending_deadline_of_a_job_overrides_that_of_the_installation(
    of_job: int | None, of_installation: float | None, ends_after: int | None
) -> None:
    status = JobStatus(phase=JobPhase.PENDING, pending_since=T0)
    recorded = a_record(status, a_replica(W0, an_attempt(phase=P.CREATING)))
    plan = a_plan({"worker": 1}, pending_deadline=of_job)
    timing = Timing(pending_deadline=of_installation)
    before = decide(plan, recorded, a_pod(phase=P.CREATING), now=(ends_after or 10**9) - 1, timing=timing)
    assert before.status.phase is JobPhase.CREATING
    assert before.wake_at == (None if ends_after is None else at(ends_after))
    if ends_after is not None:
        after = decide(plan, recorded, a_pod(phase=P.CREATING), now=ends_after, timing=timing)
        assert after.status.phase is JobPhase.FAILED


def test_the_pending_deadline_does_not_end_a_running_job() -> None:
    status = JobStatus(phase=JobPhase.PENDING, pending_since=T0)
    recorded = a_record(status, a_replica(W0, an_attempt(phase=P.PENDING)))
    decision = decide(a_plan({"worker": 1}, pending_deadline=60), recorded, a_pod(), now=3600)
    assert decision.status.phase is JobPhase.RUNNING
    assert decision.status.pending_since is None


def test_pending_begins_with_the_submission() -> None:
    decision = decide(a_plan(pending_deadline=60), now=20)
    assert decision.status.pending_since == T0
    assert decision.wake_at == at(60)


# Refusals


@pytest.mark.parametrize("where", ["refusals", "job_refusal"])
@pytest.mark.parametrize(
    ("verdict", "code", "phase"),
    [
        (RefusalVerdict.RETRY, PendingCode.QUOTA_EXCEEDED, JobPhase.CREATING),
        (RefusalVerdict.RETRY, PendingCode.CLUSTER_DENIED, JobPhase.CREATING),
        (RefusalVerdict.WAIT, PendingCode.NAME_TERMINATING, JobPhase.CREATING),
        (RefusalVerdict.WAIT, PendingCode.PREVIOUS_OBJECTS, JobPhase.QUEUED),
        (RefusalVerdict.FAIL, Reason.NAMESPACE_DELETED, JobPhase.FAILED),
        (RefusalVerdict.FAIL, Reason.NAME_CONFLICT, JobPhase.FAILED),
        (RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER, JobPhase.FAILED),
    ],
)
def test_what_a_refusal_does_to_the_job(where: str, verdict: RefusalVerdict, code: str, phase: JobPhase) -> None:
    refused = refusal(verdict, code)
    observed: dict[str, Any] = {"refusals": {W0: refused}} if where == "refusals" else {"job_refusal": refused}
    decision = decide(a_plan({"worker": 1}), a_record(None, CREATING), **observed)
    assert decision.status.phase is phase
    if phase is JobPhase.FAILED:
        assert (decision.status.reason, decision.status.message) == (code, "the cluster's words")
        assert not actions_of(decision, CreatePod)
        return
    assert [reason.code for reason in decision.status.pending_reasons] == [code]
    assert decision.actions == (EnsureObjects(), CreatePod(key=W0, attempt=1))
    assert not decision.again


@pytest.mark.parametrize("status", [running_status(), JobStatus(phase=JobPhase.RESUMING, reason=Reason.RESUMING)])
def test_only_a_new_job_waits_for_the_objects_of_a_previous_one(status: JobStatus) -> None:
    refused = refusal(RefusalVerdict.WAIT, PendingCode.PREVIOUS_OBJECTS)
    decision = decide(a_plan({"worker": 1}), a_record(status, CREATING), refusals={W0: refused})
    expected = JobPhase.RESTARTING if status.started_at else JobPhase.RESUMING
    assert decision.status.phase is expected
    assert decision.status.pending_reasons[0].code == PendingCode.PREVIOUS_OBJECTS


# Debug mode


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
def test_no_rule_ends_a_job_in_debug_mode(outcome: Outcome) -> None:
    plan = a_plan(rules=[success("worker0"), failure("worker0")], suspends_rules=True, active_deadline=100)
    recorded = a_record(running_status(), *(ended(key, outcome) for key in (W0, W1)))
    assert decide(plan, recorded, now=99).status.phase is JobPhase.RUNNING
    assert decide(plan, recorded, now=100).status.phase is JobPhase.TIMED_OUT
    cancelled = decide(plan, recorded, now=99, intent=Intent(generation=1, cancel=True))
    assert cancelled.status.phase is JobPhase.CANCELLED


# Clean-up

DONE = running_status(
    phase=JobPhase.SUCCEEDED, reason=Reason.RULE_FULFILLED, finished_at=T0, aggregate={}, observed_generation=1
)
SUCCEEDED = ended(W0, Outcome.SUCCEEDED)


@pytest.mark.parametrize(
    ("policy", "phase", "reason", "deleted"),
    [
        (CleanUpPolicy.NONE, JobPhase.SUCCEEDED, Reason.RULE_FULFILLED, []),
        (CleanUpPolicy.NONE, JobPhase.FAILED, Reason.RULE_FULFILLED, []),
        (CleanUpPolicy.NONE, JobPhase.FAILED, Reason.SUCCESS_IMPOSSIBLE, []),
        (CleanUpPolicy.NONE, JobPhase.FAILED, Reason.PENDING_DEADLINE_EXCEEDED, [W1]),
        (CleanUpPolicy.NONE, JobPhase.FAILED, Reason.REFUSED_BY_CLUSTER, [W1]),
        (CleanUpPolicy.NONE, JobPhase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, [W1]),
        (CleanUpPolicy.NONE, JobPhase.CANCELLED, Reason.CANCELLED, [W1]),
        (CleanUpPolicy.UNFINISHED, JobPhase.SUCCEEDED, Reason.RULE_FULFILLED, [W1]),
        (CleanUpPolicy.UNFINISHED, JobPhase.CANCELLED, Reason.CANCELLED, [W1]),
        (CleanUpPolicy.ALL, JobPhase.SUCCEEDED, Reason.RULE_FULFILLED, [W0, W1]),
        (CleanUpPolicy.ALL, JobPhase.FAILED, Reason.RULE_FULFILLED, [W0, W1]),
    ],
)
def test_what_clean_up_deletes(policy: CleanUpPolicy, phase: JobPhase, reason: Reason, deleted: list[Any]) -> None:
    ended_so = replace(DONE, phase=phase, reason=reason)
    recorded = a_record(ended_so, SUCCEEDED, a_replica(W1, an_attempt(key=W1)))
    decision = decide(a_plan(clean_up=policy), recorded, a_pod(W0, P.SUCCEEDED), a_pod(W1))
    assert [action.uid for action in actions_of(decision, DeletePod)] == [pod_uid(key) for key in deleted]
    assert actions_of(decision, ReleasePod) == [ReleasePod(name="job-worker-0", uid=pod_uid(W0))]
    stopping = decision.replicas[W1].attempt.stopping
    assert stopping is (StopReason.CLEAN_UP if W1 in deleted else None)
    assert not decision.status.quiet


def test_an_ended_job_creates_no_further_pods() -> None:
    waiting = a_replica(W1, an_attempt(2, key=W1, seen=False, phase=P.CREATING), retry_at=at(99), restarts=1)
    decision = decide(a_plan(), a_record(DONE, SUCCEEDED, waiting), anchor_marked=True)
    attempt = decision.replicas[W1].attempt
    assert (attempt.outcome, attempt.phase, attempt.number) == (Outcome.STOPPED, P.DELETED, 2)
    assert not actions_of(decision, CreatePod)


def test_an_ended_job_restarts_nothing() -> None:
    failed = ended(W1, Outcome.FAILED, settled=False)
    decision = decide(a_plan(), a_record(DONE, SUCCEEDED, failed), a_pod(W1, P.FAILED), now=999)
    assert decision.replicas[W1].attempt.number == 1
    assert actions_of(decision, DeletePod, CreatePod) == []


def test_the_anchor_is_marked_once_and_then_the_job_is_quiet() -> None:
    recorded = a_record(DONE, SUCCEEDED, replace(SUCCEEDED, key=W1))
    first = decide(a_plan(), recorded)
    assert first.actions == (MarkAnchor(phase="Succeeded"),)
    assert not first.status.quiet
    second = decide(a_plan(), next_record(recorded, first), anchor_marked=True)
    assert second.actions == ()
    assert second.status.quiet
    after_a_restart = decide(a_plan(), next_record(recorded, second))
    assert after_a_restart.actions == ()
    assert not after_a_restart.dirty


def test_a_quiet_job_releases_a_pod_that_appears_again_and_marks_its_anchor() -> None:
    recorded = a_record(replace(DONE, quiet=True), SUCCEEDED)
    decision = decide(a_plan({"worker": 1}), recorded, a_pod(W0, P.SUCCEEDED))
    assert decision.actions == (ReleasePod(name="job-worker-0", uid=pod_uid(W0)), MarkAnchor(phase="Succeeded"))
    assert not decision.status.quiet


def test_a_running_pod_keeps_an_ended_job_from_being_quiet_without_another_mark() -> None:
    recorded = a_record(DONE, SUCCEEDED, a_replica(W1, an_attempt(key=W1)))
    decision = decide(a_plan(), recorded, a_pod(W1), anchor_marked=True)
    assert not decision.status.quiet
    assert decision.actions == ()


@pytest.mark.parametrize(
    ("pods", "quiet"), [((), True), ((a_pod(W1, P.FAILED, deletion_deadline=T0, held=False),), False)]
)
def test_a_job_is_not_quiet_before_its_stopped_pods_are_gone(pods: tuple[Any, ...], *, quiet: bool) -> None:
    recorded = a_record(DONE, SUCCEEDED, ended(W1, Outcome.STOPPED, settled=False))
    plan = a_plan(clean_up=CleanUpPolicy.UNFINISHED)
    assert decide(plan, recorded, *pods, anchor_marked=True).status.quiet is quiet


# The end stays


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SUCCEEDED, Outcome.DISRUPTED])
def test_later_events_do_not_change_the_end_of_a_job(outcome: Outcome) -> None:
    plan = a_plan(rules=[failure("worker1"), success("worker0", "worker1")], active_deadline=1)
    phase = {Outcome.FAILED: P.FAILED, Outcome.SUCCEEDED: P.SUCCEEDED}.get(outcome, P.FAILED)
    pod = a_pod(W1, phase, disruption="Evicted" if outcome is Outcome.DISRUPTED else None)
    recorded = a_record(replace(DONE, message="done"), SUCCEEDED, a_replica(W1, an_attempt(key=W1)))
    decision: Decision = decide(plan, recorded, pod, now=500, intent=Intent(generation=1, cancel=True))
    was, now_is = recorded.status, decision.status
    assert (was.phase, was.reason, was.message, was.finished_at) == (
        now_is.phase,
        now_is.reason,
        now_is.message,
        now_is.finished_at,
    )
    assert decision.replicas[W1].attempt.outcome is outcome
    assert [key for key, _ in decision.ended] == [W1]


def test_the_end_has_one_history_entry() -> None:
    recorded = Recorded(status=running_status(), replicas=_settling(), created_at=T0)
    first = decide(a_plan(), recorded)
    assert [entry.reason for entry in first.history] == [Reason.RULE_FULFILLED]
    assert decide(a_plan(), next_record(recorded, first)).history == ()


def _settling() -> dict[Any, Replica]:
    return by_rank(SUCCEEDED, ended(W1, Outcome.SUCCEEDED))
