"""The decisions of a recovery, and that the next reconcile keeps the pods of the cluster and the end of the job."""

from app.domain.reconcile.actions import CreatePod, DeletePod, MarkAnchor
from app.domain.recovery import decisions
from app.domain.status.records import Recorded
from app.domain.usage.holds import Hold, milliseconds
from app.domain.vocabulary import CleanUpPolicy, Evidence, JobPhase, Outcome, Reason, ReplicaPhase, Use
from tests.support.plans import (
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
    next_record,
    running_status,
)

RECORDED = a_record(running_status(), a_replica(W0), ended(W1, Outcome.FAILED))


def test_an_adopted_attempt_follows_its_pod_which_is_not_deleted() -> None:
    decision = decisions.adopt(RECORDED, {W0: 3, W1: 2}, at(5))
    # The attempts of a replica are recorded without a gap.
    assert [(key, attempt.number, attempt.outcome) for key, attempt in decision.ended] == [
        (W0, 1, Outcome.DISRUPTED),
        (W0, 2, Outcome.DISRUPTED),
    ]
    assert {attempt.evidence for _, attempt in decision.ended} == {Evidence.UNAVAILABLE}
    assert [(entry.reason, entry.key, entry.attempt) for entry in decision.history] == [
        (Reason.ADOPTED, W0, 3),
        (Reason.ADOPTED, W1, 2),
    ]
    pods = a_pod(W0, attempt=3), a_pod(W1, attempt=2)
    follows = decide(a_plan(), next_record(RECORDED, decision), *pods, now=6)
    assert not actions_of(follows, CreatePod, DeletePod)
    assert {key: replica.attempt.pod_uid for key, replica in follows.replicas.items()} == {
        W0: "worker0-3",
        W1: "worker1-2",
    }
    assert follows.status.phase is JobPhase.RUNNING


def test_the_outcome_of_a_replaced_attempt_stays_and_its_evidence_is_unavailable() -> None:
    recorded = a_record(running_status(), ended(W0, Outcome.FAILED, how={"evidence": Evidence.NONE}))
    ((key, attempt),) = decisions.adopt(recorded, {W0: 2}, at(5)).ended
    assert (key, attempt.number, attempt.outcome, attempt.phase) == (W0, 1, Outcome.FAILED, ReplicaPhase.FAILED)
    assert (attempt.evidence, attempt.evidence_reason) == (Evidence.UNAVAILABLE, decisions.NOT_RECORDED)


def test_what_a_replaced_attempt_held_is_counted_once_with_the_adopted_one() -> None:
    hold = Hold(since=milliseconds(at(1)), requests={"pods": 1})
    recorded = a_record(running_status(), a_replica(W0, an_attempt(hold=hold)), ended(W1, Outcome.SUCCEEDED))
    decision = decisions.adopt(recorded, {W0: 2}, at(5))
    assert [attempt.hold for _, attempt in decision.ended] == [None]
    after = next_record(recorded, decision)
    follows = decide(a_plan(), after, a_pod(W0, ReplicaPhase.SUCCEEDED, attempt=2), now=9)
    assert sum(follows.usage.ended.values()) == 8_000
    assert follows.status.usage.ended == {"pods": {Use.USEFUL: 8_000}}


def test_without_adoption_the_pod_would_be_deleted() -> None:
    assert [action.uid for action in actions_of(decide(a_plan(), RECORDED, a_pod(W0, attempt=3)), DeletePod)] == [
        "worker0-3"
    ]


def test_an_adoption_that_is_repeated_changes_nothing() -> None:
    after = next_record(RECORDED, decisions.adopt(RECORDED, {W0: 3}, at(5)))
    again = decisions.adopt(after, {W0: 3}, at(9))
    assert not again.dirty
    assert (again.changed, again.ended, again.history) == ((), (), ())


def _end(recorded: Recorded, phase: JobPhase) -> Recorded:
    decision = decisions.end(recorded, decisions.end_in_cluster(phase), {}, at(5))
    assert [(entry.phase, entry.reason) for entry in decision.history] == [(phase, Reason.ENDED_IN_CLUSTER)]
    return next_record(recorded, decision)


def test_a_job_that_ended_in_the_cluster_ends_with_the_phase_of_its_anchor() -> None:
    recorded = a_record(running_status(), a_replica(W0), a_replica(W1))
    after = _end(recorded, JobPhase.SUCCEEDED)
    assert (after.status.phase, after.status.finished_at) == (JobPhase.SUCCEEDED, at(5))
    assert after.status.transitions[-1].phase is JobPhase.SUCCEEDED
    pods = a_pod(W0, ReplicaPhase.SUCCEEDED), a_pod(W1, ReplicaPhase.FAILED)
    follows = decide(a_plan(), after, *pods, now=6)
    assert follows.status.phase is JobPhase.SUCCEEDED
    assert actions_of(follows, MarkAnchor)
    outcomes = {key: replica.attempt.outcome for key, replica in follows.replicas.items()}
    assert outcomes == {W0: Outcome.SUCCEEDED, W1: Outcome.FAILED}


def test_what_a_clean_up_policy_keeps_runs_on_after_the_end() -> None:
    plan = a_plan(clean_up=CleanUpPolicy.NONE)
    after = _end(a_record(running_status(), a_replica(W0), a_replica(W1)), JobPhase.SUCCEEDED)
    assert not actions_of(decide(plan, after, a_pod(W0), a_pod(W1), now=6), DeletePod)


def test_a_job_without_objects_fails_and_creates_nothing() -> None:
    recorded = a_record(running_status(), a_replica(W0), a_replica(W1, an_attempt(key=W1, seen=False)))
    decision = decisions.end(recorded, decisions.missing(), {}, at(5))
    assert (decision.status.phase, decision.status.reason) == (JobPhase.FAILED, Reason.OBJECTS_MISSING)
    follows = decide(a_plan(), next_record(recorded, decision), now=6, gone=frozenset({"worker0-1"}))
    assert not actions_of(follows, CreatePod)
    outcomes = {key: replica.attempt.outcome for key, replica in follows.replicas.items()}
    assert outcomes == {W0: Outcome.DISRUPTED, W1: Outcome.STOPPED}
