"""Pods that fail, vanish, are taken away, hang on lost nodes or belong to nobody; and how much a pass may do."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.plan import Rank
from app.domain.reconcile.actions import (
    CaptureEvidence,
    ConfirmGone,
    CreatePod,
    DeletePod,
    EnsureObjects,
    ReadEvents,
    ReleasePod,
)
from app.domain.reconcile.lifecycle import NODE_LOST_WARNING
from app.domain.reconcile.reconcile import PODS_PER_RECONCILE
from app.domain.reconcile.timing import Timing
from app.domain.status.log_lines import MAX_LINES
from app.domain.status.observed import ClusterRefusal, ObservedContainer, PendingReason, RefusalVerdict
from app.domain.status.records import Recorded, Replica
from app.domain.vocabulary import Evidence, JobPhase, Outcome, PendingCode, Reason, ReplicaPhase, StopReason
from tests.support.model.cluster import World
from tests.support.model.reconcile_checks import check_reconcile
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
    at,
    decide,
    ended,
    next_record,
    pod_uid,
    restarting,
    running_status,
)

P = ReplicaPhase
ONE = a_plan({"worker": 1}, restart=restarting(2))
RUNNING = a_record(running_status(), a_replica())
NAME = "job-worker-0"
UNSEEN = an_attempt(seen=False, phase=P.CREATING)
LOST = frozenset({"n1"})


def one(replica: Replica) -> Recorded:
    return a_record(running_status(), replica)


# From nothing to pods


def test_the_first_reconcile_creates_every_object_in_order() -> None:
    decision = decide()
    assert decision.actions == (EnsureObjects(), CreatePod(key=W0, attempt=1), CreatePod(key=W1, attempt=1))
    assert (decision.status.phase, decision.dirty, decision.again) == (JobPhase.CREATING, True, False)
    again = decide(recorded=next_record(a_record(), decision))
    assert again.actions == decision.actions
    assert not again.dirty


def test_an_existing_pod_of_the_current_attempt_is_adopted() -> None:
    decision = decide(ONE, one(a_replica(attempt=UNSEEN)), a_pod(uid="found"))
    assert decision.replicas[W0].attempt.pod_uid == "found"
    assert not actions_of(decision, CreatePod, DeletePod)


# A failure, its evidence and the next attempt


def test_a_failed_attempt_waits_for_its_evidence() -> None:
    containers = (
        ObservedContainer(name="main", state="terminated", started_at=T0),
        ObservedContainer(name="never", state="waiting"),
        ObservedContainer(name="again", state="waiting", restart_count=1),
    )
    pod = a_pod(phase=P.FAILED, node="node-7", exit_code=3, finished_at=at(5), containers=containers)
    decision = decide(ONE, RUNNING, pod, now=5)
    assert decision.actions == (
        CaptureEvidence(
            key=W0,
            attempt=1,
            pod_name=NAME,
            pod_uid=pod_uid(W0),
            containers=("main", "again"),
            created_at=pod.created_at,
            node="node-7",
            lines=MAX_LINES,
        ),
    )
    ((key, attempt),) = decision.ended
    assert (key, attempt.outcome, attempt.exit_code, attempt.evidence) == (W0, Outcome.FAILED, 3, Evidence.NONE)
    assert decision.status.phase is JobPhase.RESTARTING


@pytest.mark.parametrize("skew", [0, 3600, -3600])
@pytest.mark.parametrize("evidence", [Evidence.CAPTURED, Evidence.UNAVAILABLE])
def test_the_next_attempt_follows_after_the_back_off(evidence: Evidence, skew: int) -> None:
    # The clock of the kubelet is far ahead or behind, which changes no back-off.
    attempt = an_attempt(outcome=Outcome.FAILED, exit_code=3, finished_at=at(5 + skew))
    recorded = one(a_replica(attempt=replace(attempt, evidence=evidence), restarts=1))
    pod = a_pod(phase=P.FAILED, exit_code=3)
    first = decide(ONE, recorded, pod, now=5)
    assert first.actions == (DeletePod(name=NAME, uid=pod.uid), ReleasePod(name=NAME, uid=pod.uid))
    replica = first.replicas[W0]
    assert (replica.attempt.number, replica.restarts, replica.retry_at) == (2, 2, at(25))
    assert (first.wake_at, first.again) == (at(25), True)
    assert first.history[0].message == "worker[0] failed in attempt 1 (exit code 3); attempt 2 follows"
    recorded = next_record(recorded, first)
    waiting = decide(ONE, recorded, now=24)
    assert (waiting.actions, waiting.wake_at) == ((), at(25))
    assert waiting.status.pending_reasons[0].code == PendingCode.BACK_OFF
    assert decide(ONE, recorded, pod, now=26).actions == first.actions
    assert actions_of(decide(ONE, recorded, now=25), CreatePod) == [CreatePod(key=W0, attempt=2)]


def test_the_time_of_the_next_attempt_is_known_only_while_the_replica_waits_for_it() -> None:
    waiting = one(a_replica(attempt=an_attempt(2, seen=False, phase=P.CREATING), retry_at=at(25), restarts=1))
    assert decide(ONE, waiting, now=24).replicas[W0].retry_at == at(25)
    created = decide(ONE, waiting, a_pod(phase=P.CREATING, attempt=2), now=26)
    assert (created.replicas[W0].attempt.pod_uid, created.replicas[W0].retry_at) == (pod_uid(W0, 2), None)
    paused = decide(a_plan({"worker": 1}, restart=restarting(2), paused=True), waiting, now=24)
    assert (paused.replicas[W0].attempt.outcome, paused.replicas[W0].retry_at) == (Outcome.STOPPED, None)
    # Recorded by an earlier version of the controller.
    stale = one(a_replica(attempt=an_attempt(2), retry_at=at(25), restarts=1))
    assert decide(ONE, stale, a_pod(attempt=2), now=30).replicas[W0].retry_at is None


def test_the_pod_of_the_last_attempt_is_released_and_not_deleted() -> None:
    decision = decide(ONE, one(a_replica(restarts=2)), a_pod(phase=P.FAILED))
    assert decision.replicas[W0].settled
    assert actions_of(decision, DeletePod, ReleasePod) == []
    failed = ended(W0, Outcome.FAILED, restarts=2)
    later = decide(ONE, a_record(decision.status, failed), a_pod(phase=P.FAILED))
    assert (later.status.phase, later.status.reason) == (JobPhase.FAILED, Reason.SUCCESS_IMPOSSIBLE)
    assert actions_of(later, DeletePod, ReleasePod) == [ReleasePod(name=NAME, uid=pod_uid(W0))]


# Taken away


@pytest.mark.parametrize(
    ("disruptions", "phase", "number"), [(0, JobPhase.RESTARTING, 2), (2, JobPhase.RESTARTING, 2), (3, None, 1)]
)
def test_a_foreign_deletion_is_a_disruption_up_to_the_limit(
    disruptions: int, phase: JobPhase | None, number: int
) -> None:
    timing = Timing(disruption_limit=3)
    plan = replace(ONE, tasks=a_plan({"worker": 1}).tasks)
    recorded = one(a_replica(disruptions=disruptions))
    pod = a_pod(phase=P.FAILED, deletion_deadline=T0)
    first = decide(plan, recorded, pod, timing=timing)
    assert first.replicas[W0].attempt.outcome is Outcome.DISRUPTED
    captured = replace(first.replicas[W0].attempt, evidence=Evidence.CAPTURED)
    replica = replace(first.replicas[W0], attempt=captured)
    second = decide(plan, replace(next_record(recorded, first), replicas={W0: replica}), pod, timing=timing)
    assert second.replicas[W0].attempt.number == number
    assert second.replicas[W0].restarts == 0
    assert second.status.phase is (phase or JobPhase.FAILED)


def test_a_pod_that_the_mirror_lacks_is_confirmed_gone_and_then_replaced() -> None:
    first = decide(ONE, RUNNING)
    assert first.actions == (ConfirmGone(name=NAME, uid=pod_uid(W0)),)
    assert not first.changed
    second = decide(ONE, RUNNING, gone=frozenset({pod_uid(W0)}))
    assert second.ended[0][1].reason == Reason.POD_VANISHED
    assert second.ended[0][1].evidence is Evidence.UNAVAILABLE
    assert (second.replicas[W0].attempt.number, second.replicas[W0].disruptions) == (2, 1)
    assert second.again
    third = decide(ONE, next_record(RUNNING, second))
    assert actions_of(third, CreatePod) == [CreatePod(key=W0, attempt=2)]


def test_a_pod_that_vanishes_before_its_evidence_is_stored_is_replaced_in_one_reconcile() -> None:
    failed = a_replica(attempt=an_attempt(outcome=Outcome.FAILED, finished_at=T0, evidence=Evidence.NONE))
    assert decide(ONE, one(failed)).actions == (ConfirmGone(name=NAME, uid=pod_uid(W0)),)
    decision = decide(ONE, one(failed), gone=frozenset({pod_uid(W0)}))
    assert decision.ended[0][1].evidence is Evidence.UNAVAILABLE
    assert decision.replicas[W0].attempt.number == 2


def test_a_disruption_that_is_found_and_replaced_in_one_reconcile_is_a_disruption_of_the_job() -> None:
    """As after a lost node: the forced pod is gone, and its logs cannot be read."""
    plan = a_plan({"worker": 2})
    recorded = a_record(running_status(), a_replica(), a_replica(W1, an_attempt(key=W1)))
    decision = decide(plan, recorded, a_pod(), gone=frozenset({pod_uid(W1)}))
    assert decision.replicas[W1].attempt.number == 2
    assert (decision.status.phase, decision.status.reason) == (JobPhase.RESTARTING, Reason.DISRUPTED)
    assert (decision.status.restarts, decision.status.reschedules) == (0, 1)
    assert {row.reason for row in decision.history} == {Reason.DISRUPTED}
    # The reason stays, and the disruption is counted once.
    later = decide(plan, next_record(recorded, decision), a_pod(), gone=frozenset({pod_uid(W1)}))
    assert (later.status.reason, later.status.reschedules) == (Reason.DISRUPTED, 1)


# Pods that are nobody's


def test_the_pod_of_a_former_attempt_is_deleted_before_its_name_is_used_again() -> None:
    recorded = one(a_replica(attempt=an_attempt(2, seen=False, phase=P.CREATING), restarts=1))
    decision = decide(ONE, recorded, a_pod(attempt=1))
    assert decision.actions == (
        DeletePod(name=NAME, uid=pod_uid(W0, 1)),
        ReleasePod(name=NAME, uid=pod_uid(W0, 1)),
    )
    assert decision.status.pending_reasons[0].code == PendingCode.NAME_TERMINATING


@pytest.mark.parametrize(
    ("finalizers", "said"),
    [
        ((), "the pod of the previous attempt is still terminating"),
        (("example.com/hold",), "the finalizer example.com/hold, which jobgate must not remove, keeps it"),
        (("a/b", "kueue.x-k8s.io/managed"), "the finalizers a/b, kueue.x-k8s.io/managed, which"),
        (("a/a", "b/b", "c/c", "d/d"), "the finalizers a/a, b/b, c/c and 1 more, which"),
    ],
)
def test_finalizers_of_other_clients_that_keep_a_pod_are_named_with_the_time_of_its_deletion(
    finalizers: tuple[str, ...], said: str
) -> None:
    former = replace(a_pod(attempt=1), ended=True, held=False, kept_by=finalizers)
    former = replace(former, deletion_deadline=at(30), deleted_at=T0)
    restarts = one(a_replica(attempt=an_attempt(2, seen=False, phase=P.CREATING), restarts=1))
    (reason,) = decide(ONE, restarts, former).status.pending_reasons
    assert (reason.code, reason.since, said in reason.message) == (PendingCode.NAME_TERMINATING, T0, True)
    assert ("finalizer" in reason.message) is bool(finalizers)
    stopped = one(a_replica(attempt=an_attempt(outcome=Outcome.STOPPED, evidence=Evidence.CAPTURED)))
    current = replace(former, uid=pod_uid(W0))
    message = decide(replace(ONE, paused=True), stopped, current).status.message
    assert ("finalizer" in message) is bool(finalizers)


def test_a_second_pod_of_the_same_attempt_is_deleted_and_kept_until_it_has_ended() -> None:
    other = a_pod(uid="other", name="other")
    decision = decide(ONE, RUNNING, a_pod(), other)
    assert decision.actions == (DeletePod(name="other", uid="other"),)
    other = replace(other, ended=True, deletion_deadline=T0)
    assert decide(ONE, RUNNING, a_pod(), other).actions == (ReleasePod(name="other", uid="other"),)


def test_a_pod_of_an_unknown_rank_is_deleted() -> None:
    stranger = a_pod(Rank("worker", 7))
    decision = decide(ONE, RUNNING, a_pod(), stranger)
    assert decision.actions == (
        DeletePod(name=stranger.name, uid=stranger.uid),
        ReleasePod(name=stranger.name, uid=stranger.uid),
    )
    assert set(decision.replicas) == {W0}


# Lost nodes

STUCK = a_pod(phase=P.UNKNOWN, deletion_deadline=at(30))


@pytest.mark.parametrize(
    ("now", "after", "lost", "forced", "wake_at"),
    [
        (329, 300.0, LOST, False, 330),
        (330, 300.0, LOST, True, None),
        (330, 300.0, frozenset(), False, None),
        (9999, None, LOST, False, None),
    ],
)
def test_a_terminating_pod_on_a_lost_node_is_force_deleted_after_the_wait(
    now: float, after: float | None, lost: frozenset[str], *, forced: bool, wake_at: float | None
) -> None:
    decision = decide(ONE, RUNNING, STUCK, now=now, timing=Timing(node_lost_after=after), lost_nodes=lost)
    by_force = (DeletePod(name=NAME, uid=STUCK.uid, force=True), ReleasePod(name=NAME, uid=STUCK.uid))
    assert decision.actions == (by_force if forced else ())
    assert decision.wake_at == (None if wake_at is None else at(wake_at))
    assert [entry.reason for entry in decision.history if entry.key] == ([Reason.NODE_LOST] if forced else [])
    assert decision.status.aggregate[P.UNKNOWN] == 1


def test_a_lost_node_has_one_history_entry_and_stays_the_reason() -> None:
    recorded = RUNNING
    entries = []
    for _ in range(3):
        decision = decide(ONE, recorded, STUCK, now=400, lost_nodes=LOST)
        entries += [entry for entry in decision.history if entry.key]
        assert len(actions_of(decision, DeletePod)) == 1
        recorded = next_record(recorded, decision)
    assert [entry.message for entry in entries] == [f"{NAME}: {NODE_LOST_WARNING}"]
    over = decide(ONE, recorded, now=401, gone=frozenset({STUCK.uid}))
    ((_, attempt),) = over.ended
    assert (attempt.outcome, attempt.reason, attempt.message) == (
        Outcome.DISRUPTED,
        Reason.NODE_LOST,
        NODE_LOST_WARNING,
    )


def test_a_former_pod_on_a_lost_node_does_not_change_the_current_attempt() -> None:
    recorded = one(a_replica(attempt=an_attempt(2, seen=False, phase=P.CREATING), restarts=1))
    decision = decide(ONE, recorded, STUCK, now=400, lost_nodes=LOST)
    assert DeletePod(name=NAME, uid=STUCK.uid, force=True) in decision.actions
    assert decision.replicas[W0].attempt.reason is None
    assert not [entry for entry in decision.history if entry.key]


def test_a_pod_on_a_lost_node_is_not_force_deleted_unless_it_is_being_deleted() -> None:
    decision = decide(ONE, RUNNING, a_pod(phase=P.UNKNOWN), now=9999, lost_nodes=LOST)
    assert (decision.actions, decision.wake_at) == ((), None)
    assert decision.status.phase is JobPhase.UNKNOWN


# How much, and when


def many(count: int, attempt: Any = None) -> tuple[Any, Recorded]:
    plan = a_plan({"worker": count})
    keys = list(plan.replicas)
    return plan, a_record(running_status(), *(a_replica(key, attempt or an_attempt(key=key)) for key in keys))


def test_a_reconcile_acts_on_a_bounded_number_of_pods_and_requests_another() -> None:
    count = 2 * PODS_PER_RECONCILE + 20
    world = World(plan=a_plan({"worker": count}), check=check_reconcile)
    counts, passes = [], 0
    while passes == 0 or world.recorded.status.aggregate[P.CREATING] < count or len(world.pods) < count:
        decision = world.reconcile()
        counts.append((len(actions_of(decision, CreatePod)), decision.again))
        passes += 1
        assert passes < 5
    assert counts == [(PODS_PER_RECONCILE, True), (PODS_PER_RECONCILE, True), (20, False)]


def test_all_stops_are_recorded_before_the_first_pods_are_deleted() -> None:
    plan, recorded = many(PODS_PER_RECONCILE + 10)
    decision = decide(replace(plan, paused=True), recorded, *(a_pod(key) for key in plan.replicas))
    assert len(actions_of(decision, DeletePod)) == PODS_PER_RECONCILE
    assert {replica.attempt.stopping for replica in decision.replicas.values()} == {StopReason.PAUSE}
    assert decision.again


@pytest.mark.parametrize("of_the_job", [True, False])
def test_refused_creates_do_not_request_another_reconcile_at_once(*, of_the_job: bool) -> None:
    most = PODS_PER_RECONCILE
    plan, recorded = many(most + 20, UNSEEN)
    refusal = ClusterRefusal(verdict=RefusalVerdict.RETRY, code=PendingCode.QUOTA_EXCEEDED, message="quota", since=T0)
    refused = list(plan.replicas)[:most]
    observed: dict[str, Any] = {"job_refusal": refusal} if of_the_job else {"refusals": dict.fromkeys(refused, refusal)}
    decision = decide(plan, recorded, **observed)
    creates = actions_of(decision, CreatePod)
    assert len(creates) == most
    assert not decision.again
    if not of_the_job:
        assert [create.key.rank for create in creates[:20]] == list(range(most, most + 20))


VAGUE = PendingReason(code=PendingCode.NOT_SCHEDULED, message="no scheduler has spoken yet")
EXACT = PendingReason(code=PendingCode.IMAGE_PULL, message="not found")


@pytest.mark.parametrize(
    ("now", "pending", "known", "actions", "wake_at"),
    [
        (4, VAGUE, {}, (), at(5)),
        (5, VAGUE, {}, (ReadEvents(name=NAME, uid=pod_uid(W0)),), None),
        (-3600, VAGUE, {}, (ReadEvents(name=NAME, uid=pod_uid(W0)),), None),  # the clock of the API server is ahead
        (5, None, {}, (ReadEvents(name=NAME, uid=pod_uid(W0)),), None),
        (5, VAGUE, {pod_uid(W0): EXACT}, (), None),
        (4, EXACT, {}, (), None),
    ],
)
def test_events_are_read_for_long_pending_pods_without_a_known_cause(
    now: float, pending: PendingReason | None, known: dict[str, PendingReason], actions: Any, wake_at: Any
) -> None:
    recorded = a_record(None, a_replica(attempt=an_attempt(phase=P.CREATING)))
    pod, timing = a_pod(phase=P.CREATING, pending=pending), Timing(pending_deadline=None)
    decision = decide(ONE, recorded, pod, now=now, pending_events=known, timing=timing)
    assert (decision.actions, decision.wake_at) == (actions, wake_at)


def test_the_job_is_woken_at_the_earliest_deadline() -> None:
    plan = a_plan(restart=restarting(3), active_deadline=500, pending_deadline=400)
    waiting = [
        a_replica(key, an_attempt(2, key=key, seen=False, phase=P.CREATING), retry_at=at(due), restarts=1)
        for key, due in ((W0, 90), (W1, 60))
    ]
    recorded = a_record(running_status(pending_since=T0), *waiting)
    assert decide(plan, recorded, now=10).wake_at == at(60)
    assert decide(plan, recorded, now=60).wake_at == at(90)
    assert decide(plan, recorded, now=90).wake_at == at(400)
