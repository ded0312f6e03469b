"""Why a job failed: the message of its end, its first failure, and a history row for each failed attempt."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.plan import Rank
from app.domain.reconcile import reconcile as module
from app.domain.reconcile.actions import CaptureEvidence, CreatePod
from app.domain.reconcile.reconcile import PODS_PER_RECONCILE
from app.domain.reconcile.values import Decision
from app.domain.status.log_lines import MAX_LINES
from app.domain.status.observed import ClusterRefusal, ObservedContainer, ObservedPod, RefusalVerdict
from app.domain.status.pods.containers import exit_message
from app.domain.status.records import HistoryEntry, Intent, JobStatus, Recorded
from app.domain.vocabulary import Evidence, JobPhase, Outcome, Reason, ReplicaPhase, StopReason
from tests.support.plans import (
    ON_FAILURE,
    T0,
    W0,
    W1,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    an_attempt,
    an_elastic_plan,
    at,
    by_rank,
    decide,
    ended,
    failure,
    next_record,
    pod_uid,
    restarting,
    running_status,
)

P = ReplicaPhase
ONE = a_plan({"worker": 1})
NO_PROGRAM = 'exec: "pyhton": executable file not found in $PATH'
LINES = ("Traceback (most recent call last):", "ValueError: bad rate")
IMPOSSIBLE = "no success rule can be fulfilled any more: "


def failed_pod(
    key: Rank = W0, code: int = 1, at_second: float = 5, *, started: bool = True, **more: Any
) -> ObservedPod:
    """A pod whose only container failed. Without a message of its own, it has that of `observe_pod`."""
    container = ObservedContainer(
        name="main",
        state="terminated",
        default=True,
        culprit=True,
        exit_code=code,
        signal=code - 128 if code > 128 else None,
        reason=more.get("reason", "Error"),
        message=more.get("message"),
        started_at=T0 if started else None,
    )
    known: dict[str, Any] = {"reason": "Error", "message": exit_message(container)} | more
    return a_pod(
        key,
        P.FAILED,
        exit_code=code,
        finished_at=at(at_second),
        containers=(container,),
        **known,
    )


def captured(recorded: Recorded, *keys: Rank, lines: tuple[str, ...] | None = LINES) -> Recorded:
    """The record after the evidence of these replicas has been stored, or after it was found to be unavailable."""
    state = Evidence.UNAVAILABLE if lines is None else Evidence.CAPTURED
    stored = {
        key: replace(replica, attempt=replace(replica.attempt, evidence=state, last_lines=lines))
        for key, replica in recorded.replicas.items()
        if key in keys
    }
    return replace(recorded, replicas={**recorded.replicas, **stored})


def of_replicas(entries: tuple[HistoryEntry, ...]) -> list[tuple[str, str]]:
    return [(entry.reason, entry.message) for entry in entries if entry.key is not None]


@pytest.mark.parametrize(
    ("pod", "lines", "cause", "signal"),
    [
        (
            failed_pod(code=128, started=False, reason="StartError", message=NO_PROGRAM),
            None,
            f"worker[0] failed in attempt 1 on node n1 (exit code 128, StartError): {NO_PROGRAM}",
            None,
        ),
        (
            failed_pod(),
            LINES,
            "worker[0] failed in attempt 1 on node n1 (exit code 1, Error): ValueError: bad rate",
            None,
        ),
        (failed_pod(), (), "worker[0] failed in attempt 1 on node n1 (exit code 1, Error)", None),
        (failed_pod(), None, "worker[0] failed in attempt 1 on node n1 (exit code 1, Error)", None),
        (
            failed_pod(code=137, reason="OOMKilled"),
            ("epoch 7",),
            "worker[0] failed in attempt 1 on node n1 (exit code 137, OOMKilled): epoch 7",
            9,
        ),
        (
            failed_pod(message="first\nthe \x1b[1mlast\x1b[0m words\n"),
            LINES,
            "worker[0] failed in attempt 1 on node n1 (exit code 1, Error): the last words",
            None,
        ),
    ],
    ids=["no-such-program", "log", "empty-log", "no-log", "out-of-memory", "termination-message"],
)
def test_the_end_of_a_job_names_its_cause(
    pod: ObservedPod, lines: tuple[str, ...] | None, cause: str, signal: int | None
) -> None:
    recorded = a_record(JobStatus(phase=JobPhase.PENDING, reason=Reason.WAITING_FOR_PODS), a_replica())
    first = decide(ONE, recorded, pod)
    # The log is read before the job ends, and meanwhile the phase stays: the job never ran.
    assert (first.status.phase, first.status.reason, first.status.started_at) == (
        JobPhase.PENDING,
        Reason.WAITING_FOR_PODS,
        None,
    )
    assert first.status.first_failure is not None
    assert first.status.first_failure.last_lines is None
    (capture,) = actions_of(first, CaptureEvidence)
    assert (capture.failed_container, capture.lines) == ("main", MAX_LINES)
    assert first.history == ()
    assert first.status.message == "the job ends as Failed when the log of worker[0] has been read"
    assert not first.again
    second = decide(ONE, captured(next_record(recorded, first), W0, lines=lines), pod, now=9)
    assert (second.status.phase, second.status.reason) == (JobPhase.FAILED, Reason.SUCCESS_IMPOSSIBLE)
    assert second.status.message == IMPOSSIBLE + cause
    found = second.status.first_failure
    assert found is not None
    assert (found.key, found.attempt, found.exit_code, found.reason, found.signal, found.last_lines, found.at) == (
        W0,
        1,
        pod.exit_code,
        pod.reason,
        signal,
        lines,
        at(5),
    )
    assert of_replicas(second.history) == [(Reason.REPLICA_FAILED, f"{cause}; no attempt follows")]
    assert [entry.reason for entry in second.history] == [Reason.REPLICA_FAILED, Reason.SUCCESS_IMPOSSIBLE]


def test_a_cause_without_a_pod_ends_the_job_at_once() -> None:
    """A replica that has been disrupted too often has failed; its pod is gone, so there is no log to wait for."""
    replica = a_replica(disruptions=10)
    decision = decide(ONE, a_record(running_status(), replica), gone=frozenset({pod_uid(W0)}), now=7)
    assert decision.status.message == (
        f"{IMPOSSIBLE}worker[0] was taken away in attempt 1 (PodVanished): "
        "the pod disappeared before its end could be seen"
    )
    assert decision.status.first_failure is not None
    assert (decision.status.first_failure.outcome, decision.status.first_failure.at) == (Outcome.DISRUPTED, at(7))


def test_a_cause_whose_pod_is_gone_before_its_log_was_read_ends_the_job_at_once() -> None:
    recorded, gone = a_record(running_status(), a_replica()), frozenset({pod_uid(W0)})
    waiting = next_record(recorded, decide(ONE, recorded, failed_pod()))
    lost = decide(ONE, waiting, gone=gone)
    assert lost.again
    assert decide(ONE, next_record(waiting, lost), gone=gone).status.phase is JobPhase.FAILED


def test_the_earliest_failure_is_the_cause() -> None:
    plan = a_plan({"worker": 3}, rules=[failure("worker0", "worker1", "worker2")])
    keys = [Rank("worker", rank) for rank in range(3)]
    pods = [failed_pod(key, at_second=second) for key, second in zip(keys, (8, 6, 7), strict=True)]
    recorded = a_record(running_status(), *(a_replica(key, an_attempt(key=key)) for key in keys))
    first = decide(plan, recorded, *pods)
    assert first.status.phase is JobPhase.RUNNING
    second = decide(plan, captured(next_record(recorded, first), W1), *pods)
    assert second.status.message == (
        "failureRules[0] is fulfilled: all of worker[0], worker[1], worker[2] failed: worker[1] failed in attempt 1 "
        "on node n1 (exit code 1, Error): ValueError: bad rate; 2 more replicas failed"
    )
    assert second.status.first_failure is not None
    assert second.status.first_failure.key == W1


def test_the_log_of_the_cause_is_read_first() -> None:
    count = PODS_PER_RECONCILE + 10
    plan = a_plan({"worker": count})
    keys = [Rank("worker", rank) for rank in range(count)]
    pods = [failed_pod(key, at_second=count - key.rank) for key in keys]
    decision = decide(plan, a_record(running_status(), *(a_replica(key, an_attempt(key=key)) for key in keys)), *pods)
    captures = actions_of(decision, CaptureEvidence)
    assert captures[0].key == keys[-1]
    # Only the first failure shows several lines.
    assert [capture.lines for capture in captures] == [MAX_LINES] + [1] * (PODS_PER_RECONCILE - 1)
    assert decision.again


def test_a_job_that_is_about_to_end_starts_nothing() -> None:
    plan = a_plan(rules=[failure("worker0")], restart=restarting(limit=1))
    plan = replace(plan, tasks=a_plan().tasks)
    comes_back = a_replica(W1, an_attempt(2, key=W1, seen=False, phase=P.CREATING), restarts=1)
    recorded = a_record(running_status(phase=JobPhase.RESTARTING, reason=Reason.RESTARTING), a_replica(), comes_back)
    decision = decide(plan, recorded, failed_pod())
    assert decision.status.phase is JobPhase.RESTARTING
    assert actions_of(decision, CreatePod) == []


def test_a_cancelled_job_does_not_wait_for_its_cause() -> None:
    recorded = a_record(running_status(), a_replica())
    waiting = next_record(recorded, decide(ONE, recorded, failed_pod()))
    cancel = Intent(generation=1, cancel=True)
    decision = decide(ONE, waiting, failed_pod(), intent=cancel)
    assert (decision.status.phase, decision.status.message) == (JobPhase.CANCELLED, "cancelled")
    # The evidence is stored nevertheless, and then the history has the failure and the first failure its lines.
    assert len(actions_of(decision, CaptureEvidence)) == 1
    later = decide(ONE, captured(next_record(waiting, decision), W0), failed_pod(), intent=cancel)
    assert [reason for reason, _ in of_replicas(later.history)] == [Reason.REPLICA_FAILED]
    assert later.status.first_failure is not None
    assert later.status.first_failure.last_lines == LINES


def test_a_replica_that_leaves_completes_the_first_failure() -> None:
    plan = a_plan(restart=restarting(limit=3))
    recorded = a_record(running_status(), a_replica(), a_replica(W1, an_attempt(key=W1)))
    first = decide(plan, recorded, a_pod(), failed_pod(W1))
    smaller = an_elastic_plan(plan, "worker", 1)
    second = decide(smaller, captured(next_record(recorded, first), W1), a_pod(), failed_pod(W1))
    assert second.status.first_failure is not None
    assert (second.status.first_failure.key, second.status.first_failure.last_lines) == (W1, LINES)


def restarted() -> tuple[Recorded, Decision]:
    """A job whose worker[0] failed, and the reconcile that starts its second attempt."""
    plan = a_plan(restart=restarting(limit=3))
    recorded = a_record(running_status(), a_replica(), a_replica(W1, an_attempt(key=W1)))
    first = decide(plan, recorded, failed_pod(), a_pod(W1))
    assert first.status.message == (
        "1 of 2 replicas are restarting: worker[0] failed in attempt 1 on node n1 (exit code 1, Error)"
    )
    known = captured(next_record(recorded, first), W0)
    return known, decide(plan, known, failed_pod(), a_pod(W1))


def test_a_restart_names_its_cause_in_status_and_history() -> None:
    _, decision = restarted()
    cause = "worker[0] failed in attempt 1 on node n1 (exit code 1, Error): ValueError: bad rate"
    assert decision.status.message == f"1 of 2 replicas are restarting: {cause}"
    assert of_replicas(decision.history) == [(Reason.RESTARTING, f"{cause}; attempt 2 follows")]
    # The end of the first attempt has been recorded.
    assert decision.ended == ()


def test_the_first_failure_stays_through_restarts_resizes_pauses_and_the_end() -> None:
    known, decision = restarted()
    first = decision.status.first_failure
    assert first is not None
    assert (first.key, first.attempt, first.last_lines) == (W0, 1, LINES)
    recorded = next_record(known, decision)
    plan = an_elastic_plan(a_plan(restart=restarting(limit=3)), "worker", 1)
    moved = replace(recorded, replicas=by_rank(a_replica(W0, an_attempt(2)), a_replica(W1, an_attempt(key=W1))))
    later = decide(plan, moved, a_pod(attempt=2), failed_pod(W1, code=9), now=60)
    assert later.status.first_failure == first
    resuming = replace(recorded, status=replace(recorded.status, phase=JobPhase.PAUSED, reason=Reason.PAUSED))
    resumed = decide(a_plan(restart=restarting(limit=3)), resuming, now=70)
    assert (resumed.status.phase, resumed.status.first_failure) == (JobPhase.RESUMING, first)
    over = replace(recorded, status=replace(recorded.status, phase=JobPhase.FAILED, finished_at=at(9)))
    assert decide(plan, over, a_pod(W1), now=90).status.first_failure == first


@pytest.mark.parametrize(
    ("attempt", "pod"),
    [
        ({"stopping": StopReason.PAUSE}, failed_pod()),
        ({}, a_pod(phase=P.FAILED, disruption="Evicted")),
        ({}, a_pod(phase=P.SUCCEEDED)),
    ],
    ids=["stopped", "disrupted", "succeeded"],
)
def test_stops_and_replaced_disruptions_are_no_failures(attempt: dict[str, Any], pod: ObservedPod) -> None:
    recorded = a_record(running_status(), a_replica(attempt=an_attempt(**attempt)))
    assert decide(ONE, recorded, pod).status.first_failure is None


def test_a_failure_after_the_end_is_in_the_history_and_is_not_the_first() -> None:
    over = running_status(phase=JobPhase.SUCCEEDED, reason=Reason.RULE_FULFILLED, finished_at=at(1))
    recorded = a_record(over, a_replica())
    first = decide(ONE, recorded, failed_pod())
    assert first.status.first_failure is None
    second = decide(ONE, captured(next_record(recorded, first), W0), failed_pod())
    assert second.status.first_failure is None
    assert [reason for reason, _ in of_replicas(second.history)] == [Reason.REPLICA_FAILED]
    assert decide(ONE, next_record(captured(next_record(recorded, first), W0), second), failed_pod()).history == ()


def test_the_number_of_history_rows_about_failures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FAILURE_ROWS", 3)
    plan = a_plan({"worker": 5}, restart=ON_FAILURE)
    keys = [Rank("worker", rank) for rank in range(5)]
    unreported = [ended(key, Outcome.FAILED, unreported=True) for key in keys]
    recorded = a_record(running_status(failure_rows=1), *unreported)
    decision = decide(plan, recorded)
    rows = of_replicas(decision.history)
    assert len(rows) == 2
    assert [module.NO_FURTHER_ROWS in message for _, message in rows] == [False, True]
    assert decision.status.failure_rows == 3
    assert not any(replica.unreported for replica in decision.replicas.values())
    assert [entry.reason for entry in decision.history if entry.key is None] == [Reason.SUCCESS_IMPOSSIBLE]


def test_the_message_of_a_refusal_is_one_printable_line_of_bounded_length() -> None:
    refusal = ClusterRefusal(
        verdict=RefusalVerdict.FAIL, code=Reason.REFUSED_BY_CLUSTER, message="no\n\x07such" + "x" * 5000, since=T0
    )
    message = decide(ONE, job_refusal=refusal).status.message
    assert message.startswith("no \N{REPLACEMENT CHARACTER}suchx")
    assert len(message) == 1000
