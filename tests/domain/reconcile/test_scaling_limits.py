"""Changes of size that meet something else: a lost node, a start, a cancel, an end, the limit of a pass."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.plan import Rank
from app.domain.reconcile.actions import CreatePod, DeletePod, ReleasePod
from app.domain.reconcile.reconcile import PODS_PER_RECONCILE
from app.domain.reconcile.timing import Timing
from app.domain.status.observed import ClusterRefusal, RefusalVerdict
from app.domain.status.records import Intent
from app.domain.vocabulary import (
    CleanUpPolicy,
    JobPhase,
    Outcome,
    PendingCode,
    Reason,
    ReplicaPhase,
    RestartScope,
    ScaleOutcome,
    StopReason,
)
from tests.domain.reconcile.test_scaling import W, asked, pods, running, sized
from tests.support.plans import (
    T0,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    an_attempt,
    at,
    decide,
    ended,
    next_record,
    pod_uid,
    restarting,
    running_status,
)

P = ReplicaPhase
GOING = a_replica(W[1], an_attempt(key=W[1], stopping=StopReason.SCALE_DOWN, started_at=T0, node="n1"), leaving=True)
OVER = running_status(phase=JobPhase.FAILED, reason=Reason.RULE_FULFILLED, finished_at=T0, restarts=1, reschedules=1)


@pytest.mark.parametrize(("after", "forced"), [(60, True), (600, False), (None, False)])
def test_a_leaving_pod_on_a_lost_node_is_force_deleted_after_the_wait(after: float | None, *, forced: bool) -> None:
    pod = a_pod(W[1], P.UNKNOWN, started_at=T0, deletion_deadline=at(30))
    where: dict[str, Any] = {"now": 100, "timing": Timing(node_lost_after=after), "lost_nodes": frozenset({"n1"})}
    record = running(1, asked(2, 1), replicas={W[1]: GOING})
    decision = decide(sized(1), record, *pods(1), pod, **where)
    assert [action.force for action in actions_of(decision, DeletePod)] == [True] * forced
    assert len(actions_of(decision, ReleasePod)) == forced
    assert (decision.status.phase, decision.scaled) == (JobPhase.SCALING, ())
    if forced:
        gone = decide(sized(1), next_record(record, decision), *pods(1), gone=frozenset({pod.uid}), now=101)
        assert gone.replicas[W[1]].attempt.outcome is Outcome.STOPPED
        assert [one.outcome for one in gone.scaled] == [ScaleOutcome.REACHED]
        assert gone.status.phase is JobPhase.RUNNING


def test_a_job_that_has_yet_to_start_is_pending_whatever_its_size() -> None:
    waiting = [a_replica(key, an_attempt(key=key, phase=P.PENDING)) for key in W[:2]]
    unseen = a_replica(W[2], an_attempt(key=W[2], seen=False, phase=P.CREATING))
    record = replace(a_record(None, *waiting, unseen), scaling=[asked(3, 2)])
    decision = decide(sized(2), record, *(a_pod(key, P.PENDING) for key in W[:2]))
    assert decision.status.phase is JobPhase.PENDING
    assert decision.replicas[W[2]].attempt.outcome is Outcome.STOPPED
    assert not decision.actions
    assert [one.outcome for one in decision.scaled] == [ScaleOutcome.REACHED]


QUOTA = ClusterRefusal(
    verdict=RefusalVerdict.RETRY, code=PendingCode.QUOTA_EXCEEDED, message="exceeded quota: pods", since=T0
)


@pytest.mark.parametrize(
    ("pods_there", "outcome", "message"),
    [
        # The quota has let in rank 2 and not rank 1: the request is open until rank 2 is gone.
        ([W[0], W[2]], None, ""),
        (
            [W[0]],
            ScaleOutcome.REACHED,
            "the replicas beyond 2 are gone, and 1 of the remaining ones have not started",
        ),
        # The quota has let in rank 1.
        ([W[0], W[1]], ScaleOutcome.REACHED, "2 replicas are running or done"),
    ],
)
def test_a_scale_down_is_never_refused(pods_there: list[Rank], outcome: ScaleOutcome | None, message: str) -> None:
    known = {
        key: a_replica(key, an_attempt(key=key, started_at=T0))
        if key in pods_there
        else a_replica(key, an_attempt(key=key, seen=False, phase=P.CREATING))
        for key in W[:3]
    }
    record = running(1, asked(3, 2), replicas=known)
    refusals = {key: QUOTA for key in W[:3] if key not in pods_there}
    decision = decide(sized(2), record, *(a_pod(key, started_at=T0) for key in pods_there), refusals=refusals)
    assert [(one.outcome, one.message) for one in decision.scaled] == ([(outcome, message)] if outcome else [])


def test_a_cancelled_job_creates_no_replicas_of_its_last_scale_up() -> None:
    stopped = ended(W[0], Outcome.STOPPED)
    record = replace(a_record(running_status(), stopped), scaling=[asked(1, 2)])
    intent: dict[str, Any] = {"intent": Intent(generation=2, cancel=True)}
    first = decide(sized(2), record, **intent)
    assert not actions_of(first, CreatePod)
    assert first.again
    last = decide(sized(2), next_record(record, first), **intent)
    assert last.status.phase is JobPhase.CANCELLED
    assert [one.outcome for one in last.scaled] == [ScaleOutcome.JOB_ENDED]
    assert (first.status.reschedules, last.status.reschedules) == (0, 0)


def test_an_ended_job_is_quiet_only_after_all_leaving_pods_are_gone() -> None:
    record = replace(running(1, replicas={W[0]: ended(W[0], Outcome.SUCCEEDED), W[1]: GOING}), status=OVER)
    pod = a_pod(W[1], started_at=T0, deletion_deadline=at(30))
    assert not decide(sized(1), record, pod, anchor_marked=True).status.quiet
    out = {**record.replicas, W[1]: ended(W[1], Outcome.STOPPED, leaving=True)}
    held = replace(pod, phase=P.FAILED, ended=True)
    assert not decide(sized(1), replace(record, replicas=out), held, anchor_marked=True).status.quiet
    assert decide(sized(1), replace(record, replicas=out), anchor_marked=True).status.quiet


def test_all_stops_are_recorded_at_once_even_if_the_deletions_need_several_reconciles() -> None:
    every = [Rank("worker", rank) for rank in range(PODS_PER_RECONCILE + 20)]
    known = [a_replica(key, an_attempt(key=key, started_at=T0)) for key in every]
    record = replace(a_record(running_status(), *known), pod_names={key: f"job-worker-{key.rank}" for key in every})
    seen = {key: a_pod(key, started_at=T0) for key in every}
    first = decide(sized(1), record, *seen.values())
    assert len(actions_of(first, DeletePod)) == PODS_PER_RECONCILE
    assert first.again
    assert sum(replica.attempt.stopping is not None for replica in first.replicas.values()) == len(every) - 1
    for action in actions_of(first, DeletePod):
        key = next(key for key in every if pod_uid(key) == action.uid)
        seen[key] = replace(seen[key], deletion_deadline=at(30))
    second = decide(sized(1), next_record(record, first), *seen.values())
    assert len(actions_of(second, DeletePod)) == 19
    assert not second.again


@pytest.mark.parametrize("end", [{"exit_code": 1}, {"disruption": "EvictionByEvictionAPI"}])
def test_changes_of_replicas_after_the_end_are_not_counted(end: dict[str, Any]) -> None:
    """Pods that nobody cleans up run on, and may fail or be taken away."""
    plan = sized(2, restart=restarting(3, scope=RestartScope.JOB), clean_up=CleanUpPolicy.NONE)
    record = replace(running(2), status=OVER)
    decision = decide(plan, record, a_pod(W[0]), a_pod(W[1], P.FAILED, **end))
    assert decision.replicas[W[1]].attempt.outcome is not None
    assert (decision.status.restarts, decision.status.reschedules) == (1, 1)


def test_a_failure_during_a_cancel_is_not_a_restart() -> None:
    plan = sized(2, restart=restarting(3, scope=RestartScope.JOB))
    intent: dict[str, Any] = {"intent": Intent(generation=2, cancel=True)}
    decision = decide(plan, running(2), a_pod(W[0]), a_pod(W[1], P.FAILED, exit_code=1), **intent)
    assert decision.status.restarts == 0
