"""A job that changes its size: who joins, who leaves, what is recorded of it, and what its phase is meanwhile."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.plan import HostsPlan, JobPlan, Rank
from app.domain.reconcile.actions import (
    CaptureEvidence,
    ConfirmGone,
    CreatePod,
    DeletePod,
    EnsureObjects,
    ReleasePod,
    WriteHosts,
)
from app.domain.status.observed import ClusterRefusal, ObservedPod, RefusalVerdict
from app.domain.status.records import Intent, Recorded, Replica, ScaleRecord
from app.domain.vocabulary import (
    Evidence,
    JobPhase,
    Outcome,
    PendingCode,
    Reason,
    ReplicaPhase,
    RestartPolicy,
    ScaleOutcome,
    StopReason,
)
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
    next_record,
    pod_uid,
    restarting,
    running_status,
)

P = ReplicaPhase
W = [Rank("worker", rank) for rank in range(4)]


def sized(workers: int, **more: Any) -> JobPlan:
    """An elastic job of that many workers; each size is a generation of its own."""
    plan = a_plan({"worker": workers}, **more)
    tasks = tuple(replace(task, elastic=True) for task in plan.tasks)
    return replace(plan, tasks=tasks, identity=replace(plan.identity, generation=workers))


def asked(before: int, after: int, seq: int = 1, **more: Any) -> ScaleRecord:
    return ScaleRecord(
        seq=seq,
        task="worker",
        from_replicas=before,
        to_replicas=after,
        actor="ann",
        reason="",
        requested_at=T0,
        **more,
    )


def running(workers: int, *scaling: ScaleRecord, replicas: dict[Rank, Replica] | None = None) -> Recorded:
    known = {key: a_replica(key, an_attempt(key=key, started_at=T0)) for key in W[:workers]} | (replicas or {})
    record = a_record(running_status(), *known.values())
    return replace(record, scaling=scaling, pod_names={key: f"job-worker-{key.rank}" for key in known})


def pods(workers: int) -> list[ObservedPod]:
    return [a_pod(key, started_at=T0) for key in W[:workers]]


def test_scaling_up_creates_the_new_ranks_and_changes_no_other() -> None:
    decision = decide(sized(4), running(2, asked(2, 4)), *pods(2))
    assert actions_of(decision, CreatePod) == [CreatePod(key=key, attempt=1) for key in W[2:]]
    assert not actions_of(decision, DeletePod, ReleasePod)
    assert {key for key, replica in decision.replicas.items() if replica.attempt.stopping} == set()
    assert (decision.status.phase, decision.status.reason) == (JobPhase.SCALING, Reason.SCALING)
    assert decision.status.aggregate[P.CREATING] == 2
    assert decision.status.reschedules == 1
    assert decision.scaled == ()


def test_scaling_down_stops_the_highest_ranks_and_is_recorded_first() -> None:
    decision = decide(sized(2), running(4, asked(4, 2)), *pods(4))
    assert [action.uid for action in actions_of(decision, DeletePod)] == [pod_uid(key) for key in W[2:]]
    assert not any(action.force for action in actions_of(decision, DeletePod))
    leaving = {key: replica for key, replica in decision.replicas.items() if replica.leaving}
    assert {key: replica.attempt.stopping for key, replica in leaving.items()} == dict.fromkeys(
        W[2:], StopReason.SCALE_DOWN
    )
    assert decision.status.phase is JobPhase.SCALING
    assert sum(decision.status.aggregate.values()) == 2


def test_a_replica_that_has_left_stays_on_record_and_fires_no_rule() -> None:
    plan = sized(1, restart=restarting(0))
    recorded = running(
        2,
        asked(2, 1),
        replicas={W[1]: a_replica(W[1], an_attempt(key=W[1], stopping=StopReason.SCALE_DOWN), leaving=True)},
    )
    gone = a_pod(W[1], P.FAILED, exit_code=143, deletion_deadline=T0)
    decision = decide(plan, recorded, *pods(1), gone)
    left = decision.replicas[W[1]]
    assert (left.attempt.outcome, left.phase, left.leaving) == (Outcome.STOPPED, P.DELETED, True)
    assert decision.status.phase is JobPhase.RUNNING
    assert decision.status.restarts == 0
    [record] = decision.scaled
    assert (record.outcome, record.settled_at) == (ScaleOutcome.REACHED, T0)


def test_the_evidence_of_a_leaving_replica_is_stored_before_its_pod_is_released() -> None:
    outcome = an_attempt(key=W[1], outcome=Outcome.STOPPED, stopping=StopReason.SCALE_DOWN)
    recorded = running(2, replicas={W[1]: a_replica(W[1], outcome, leaving=True)})
    pod = a_pod(W[1], P.FAILED, deletion_deadline=T0)
    assert actions_of(decide(sized(1), recorded, *pods(1), pod), ReleasePod) == [ReleasePod(name=pod.name, uid=pod.uid)]


def test_a_leaving_pod_that_the_mirror_lacks_is_confirmed_by_its_recorded_name() -> None:
    decision = decide(sized(1), running(2, asked(2, 1)), *pods(1))
    assert actions_of(decision, ConfirmGone) == [ConfirmGone(name="job-worker-1", uid=pod_uid(W[1]))]


def test_the_attempt_numbers_of_a_returning_rank_continue() -> None:
    left = an_attempt(key=W[1], outcome=Outcome.STOPPED, stopping=StopReason.SCALE_DOWN, started_at=T0)
    recorded = running(1, asked(1, 2), replicas={W[1]: a_replica(W[1], left, leaving=True)})
    first = decide(sized(2), recorded, *pods(1))
    back = first.replicas[W[1]]
    assert (back.attempt.number, back.leaving, back.restarts) == (2, False, 0)
    assert first.status.phase is JobPhase.SCALING
    second = decide(sized(2), next_record(recorded, first), *pods(1))
    assert actions_of(second, CreatePod) == [CreatePod(key=W[1], attempt=2)]
    assert second.status.phase is JobPhase.SCALING


def left_behind(outcome: Outcome, **more: Any) -> Replica:
    """A rank that ended by itself just as the job shrank: nobody had asked it to stop."""
    return a_replica(W[1], an_attempt(key=W[1], outcome=outcome), leaving=True, **more)


@pytest.mark.parametrize("policy", RestartPolicy)
@pytest.mark.parametrize(
    "end", [{"phase": P.FAILED, "exit_code": 1}, {"phase": P.FAILED, "disruption": "EvictionByEvictionAPI"}]
)
def test_a_rank_that_failed_while_leaving_returns_without_a_charged_restart(
    end: dict[str, Any], policy: RestartPolicy
) -> None:
    small, large = (sized(size, restart=restarting(0, policy)) for size in (1, 2))
    shrunk = decide(small, running(2, asked(2, 1)), *pods(1), a_pod(W[1], started_at=T0, **end))
    assert shrunk.status.phase is JobPhase.RUNNING
    assert (shrunk.status.restarts, shrunk.replicas[W[1]].settled) == (0, False)
    record = next_record(running(2, asked(2, 1)), shrunk)
    out = replace(shrunk.replicas[W[1]], attempt=replace(shrunk.replicas[W[1]].attempt, evidence=Evidence.CAPTURED))
    record = replace(record, replicas={**record.replicas, W[1]: out}, scaling=[asked(1, 2, seq=2)])
    back = decide(large, record, *pods(1))
    replica = back.replicas[W[1]]
    assert (replica.attempt.number, replica.restarts, replica.disruptions, replica.retry_at) == (2, 0, 0, None)
    assert back.status.phase is JobPhase.SCALING
    assert back.status.restarts == 0
    again = decide(large, next_record(record, back), *pods(1))
    assert actions_of(again, CreatePod) == [CreatePod(key=W[1], attempt=2)]


def test_a_rank_that_returns_before_its_evidence_is_stored_has_no_charged_restart() -> None:
    plan, failed = sized(2, restart=restarting(0)), a_pod(W[1], P.FAILED, started_at=T0, exit_code=1)
    shrunk = decide(sized(1), running(2, asked(2, 1)), *pods(1), failed)
    record = next_record(running(2), shrunk)
    back = decide(plan, record, *pods(1), failed)
    assert actions_of(back, CaptureEvidence)
    later = decide(plan, next_record(record, back), *pods(1), failed)
    assert not later.status.phase.is_terminal
    assert not later.replicas[W[1]].settled


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.DISRUPTED, Outcome.STOPPED])
def test_the_restarts_of_a_rank_before_it_left_no_longer_count(outcome: Outcome) -> None:
    stopped = {"settled": outcome is not Outcome.STOPPED}
    out = left_behind(outcome, restarts=3, disruptions=9, retry_at=at(600), **stopped)
    gone = decide(sized(1), running(1, replicas={W[1]: out}), *pods(1))
    record = replace(next_record(running(1), gone), scaling=[asked(1, 2)])
    back = decide(sized(2, restart=restarting(0, RestartPolicy.NEVER)), record, *pods(1))
    replica = back.replicas[W[1]]
    assert (replica.attempt.number, replica.restarts, replica.disruptions, replica.retry_at) == (2, 0, 0, None)
    grown = next_record(record, back)
    refusal = {
        "refusals": {
            W[1]: ClusterRefusal(verdict=RefusalVerdict.FAIL, code=Reason.NAME_CONFLICT, message="no", since=T0)
        }
    }
    refused = decide(sized(2), grown, *pods(1), **refusal)
    assert refused.status.phase is JobPhase.SCALING, "a newcomer that is refused fails no job"


def test_a_rank_that_leaves_and_returns_between_two_reconciles_has_not_left() -> None:
    decision = decide(sized(2), running(2, asked(2, 1, seq=1), asked(1, 2, seq=2)), *pods(2))
    assert not decision.actions
    assert [replica.attempt.stopping for replica in decision.replicas.values()] == [None, None]
    assert [record.outcome for record in decision.scaled] == [ScaleOutcome.REPLACED, ScaleOutcome.REACHED]
    assert (decision.status.phase, decision.status.reschedules) == (JobPhase.RUNNING, 0)


def test_a_returning_rank_waits_for_its_terminating_pod() -> None:
    going = a_replica(W[1], an_attempt(key=W[1], stopping=StopReason.SCALE_DOWN, started_at=T0), leaving=True)
    record = running(1, asked(1, 2), replicas={W[1]: going})
    terminating = a_pod(W[1], started_at=T0, deletion_deadline=at(30))
    back = decide(sized(2), record, *pods(1), terminating)
    assert not back.actions
    assert (back.replicas[W[1]].attempt.number, back.status.phase) == (1, JobPhase.SCALING)
    ended_pod = a_pod(W[1], P.FAILED, started_at=T0, exit_code=143, deletion_deadline=at(30))
    over = decide(sized(2), next_record(record, back), *pods(1), ended_pod)
    assert over.replicas[W[1]].attempt.outcome is Outcome.STOPPED
    assert over.status.restarts == 0


def test_a_returning_rank_that_had_succeeded_does_not_run_again() -> None:
    done = ended(W[1], Outcome.SUCCEEDED, leaving=True)
    decision = decide(sized(2), running(1, asked(1, 2), replicas={W[1]: done}), *pods(1))
    assert not actions_of(decision, CreatePod)
    assert decision.replicas[W[1]].attempt.outcome is Outcome.SUCCEEDED
    assert [record.outcome for record in decision.scaled] == [ScaleOutcome.REACHED]


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        ([P.RUNNING, P.RUNNING, P.RUNNING], ScaleOutcome.REACHED),
        ([P.RUNNING, P.RUNNING, P.PENDING], None),
        ([P.RUNNING, P.SUCCEEDED, P.RUNNING], ScaleOutcome.REACHED),
        ([P.RUNNING, P.RUNNING, P.UNKNOWN], None),
    ],
)
def test_a_size_is_reached_when_all_requested_replicas_run_or_have_succeeded(
    phases: list[ReplicaPhase], outcome: ScaleOutcome | None
) -> None:
    seen = [a_pod(key, phase, started_at=T0) for key, phase in zip(W, phases, strict=False)]
    decision = decide(sized(3), running(3, asked(2, 3)), *seen)
    assert [record.outcome for record in decision.scaled] == ([outcome] if outcome else [])


def test_a_newer_request_replaces_an_older_one() -> None:
    decision = decide(sized(3), running(3, asked(2, 4, seq=1), asked(4, 3, seq=2)), *pods(3))
    assert [(record.seq, record.outcome) for record in decision.scaled] == [
        (1, ScaleOutcome.REPLACED),
        (2, ScaleOutcome.REACHED),
    ]


def refused(verdict: RefusalVerdict, code: str) -> dict[Rank, ClusterRefusal]:
    return {W[2]: ClusterRefusal(verdict=verdict, code=code, message="no", since=T0)}


@pytest.mark.parametrize(
    ("verdict", "code", "outcome"),
    [
        (RefusalVerdict.RETRY, PendingCode.QUOTA_EXCEEDED, ScaleOutcome.REFUSED),
        (RefusalVerdict.RETRY, PendingCode.CLUSTER_DENIED, ScaleOutcome.REFUSED),
        (RefusalVerdict.RETRY, PendingCode.CLUSTER_UNREACHABLE, None),
        (RefusalVerdict.WAIT, PendingCode.PREVIOUS_OBJECTS, None),
        (RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER, ScaleOutcome.REFUSED),
        (RefusalVerdict.FAIL, Reason.NAME_CONFLICT, ScaleOutcome.REFUSED),
    ],
)
def test_a_refusal_of_further_replicas_fails_the_request_and_not_the_job(
    verdict: RefusalVerdict, code: str, outcome: ScaleOutcome | None
) -> None:
    decision = decide(sized(3), running(2, asked(2, 3)), *pods(2), refusals=refused(verdict, code))
    assert [record.outcome for record in decision.scaled] == ([outcome] if outcome else [])
    assert decision.status.phase is JobPhase.SCALING
    assert sum(reason.count for reason in decision.status.pending_reasons) == 1


def test_a_refusal_fails_a_job_that_never_ran() -> None:
    recorded = a_record(None, *(a_replica(key, an_attempt(key=key, phase=P.PENDING)) for key in W[:2]))
    decision = decide(sized(3), recorded, *pods(2), refusals=refused(RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER))
    assert decision.status.phase is JobPhase.FAILED


def test_the_end_of_the_job_closes_open_scale_records() -> None:
    done = [a_pod(key, P.SUCCEEDED, started_at=T0) for key in W[:2]]
    recorded = running(2, asked(3, 2), replicas={W[2]: a_replica(W[2], an_attempt(key=W[2]), leaving=True)})
    decision = decide(sized(2), recorded, *done, a_pod(W[2]))
    assert decision.status.phase is JobPhase.SUCCEEDED
    assert [record.outcome for record in decision.scaled] == [ScaleOutcome.JOB_ENDED]
    assert [action.uid for action in actions_of(decision, DeletePod)] == [pod_uid(W[2])]


def test_a_cancelled_job_waits_for_its_leaving_replicas() -> None:
    leaving = a_replica(W[1], an_attempt(key=W[1], stopping=StopReason.SCALE_DOWN), leaving=True)
    stopped = a_replica(W[0], an_attempt(key=W[0], outcome=Outcome.STOPPED, stopping=StopReason.CANCEL))
    recorded = running(0, replicas={W[0]: stopped, W[1]: leaving})
    intent = {"intent": Intent(generation=1, cancel=True)}
    assert decide(sized(1), recorded, a_pod(W[1], deletion_deadline=T0), **intent).status.phase is JobPhase.RUNNING
    ended_pod = a_pod(W[1], P.FAILED, deletion_deadline=T0)
    assert decide(sized(1), recorded, ended_pod, **intent).status.phase is JobPhase.CANCELLED


@pytest.mark.parametrize(("written", "writes"), [(None, True), (2, True), (3, False)])
def test_the_list_of_hosts_is_written_once_a_generation_and_before_the_pods(
    written: int | None, *, writes: bool
) -> None:
    plan = replace(sized(3), hosts=HostsPlan(name="job-hosts", hosts={"worker": ("a", "b", "c")}))
    decision = decide(plan, running(2, asked(2, 3)), *pods(2), hosts_generation=written)
    kinds = [type(action) for action in decision.actions]
    assert kinds == [EnsureObjects, *([WriteHosts] if writes else []), CreatePod]


def test_transitions_are_the_newest_ten_and_the_last_into_each_phase() -> None:
    record = a_record()
    flips = [pods(1), [a_pod(W[0], P.PENDING)]]
    plan = sized(1)
    record = next_record(record, decide(plan, record))
    for step in range(30):
        record = next_record(record, decide(plan, record, *flips[step % 2], now=step))
    seen = record.status.transitions
    assert [one.phase for one in seen[-2:]] == [JobPhase.RUNNING, JobPhase.RESTARTING]
    assert JobPhase.CREATING in {one.phase for one in seen}
    assert list(seen) == sorted(seen, key=lambda one: one.at)
    assert len(seen) <= 10 + len(JobPhase)
