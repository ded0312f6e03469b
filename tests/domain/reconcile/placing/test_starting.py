"""A job that holds nodes while others of its replicas find none frees them after a while, and starts again later."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.actions import CreatePod, DeletePod
from app.domain.reconcile.timing import Timing
from app.domain.status.records import Intent, JobPendingReason, JobStatus, PartialStart, Replica
from app.domain.vocabulary import JobPhase, Outcome, PendingCode, Reason, ReplicaPhase, StopReason
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
    running_status,
)

TIMING = Timing()
PENDING = JobStatus(phase=JobPhase.PENDING, pending_since=T0)
UNPLACED = an_attempt(key=W1, phase=ReplicaPhase.CREATING)
ONE_OF_TWO = a_record(
    replace(PENDING, partial_start=PartialStart(since=T0)),
    a_replica(W0, an_attempt(node="n1")),
    a_replica(W1, UNPLACED),
)
PODS = (a_pod(W0), a_pod(W1, ReplicaPhase.CREATING))


def backing_off(key: Rank) -> Replica:
    return a_replica(key, an_attempt(2, key=key, seen=False, phase=ReplicaPhase.CREATING), retry_at=at(9_000))


def test_a_partial_start_is_noticed_and_has_a_deadline() -> None:
    before = replace(ONE_OF_TWO, status=PENDING)
    decision = decide(a_plan(), before, *PODS, now=5, timing=TIMING)
    assert decision.status.partial_start == PartialStart(since=at(5))
    assert decision.wake_at == at(605)


def a_reason(code: PendingCode, message: str, key: Rank, *, count: int = 1, started: bool = False) -> JobPendingReason:
    return JobPendingReason(code=code, message=message, since=T0, replicas=(str(key),), count=count, started=started)


NO_GPU = a_reason(PendingCode.UNSCHEDULABLE, "no GPU is free", W1)
NO_IMAGE = a_reason(PendingCode.IMAGE_PULL, "no such image", W0, count=3)
FAULT = a_reason(PendingCode.CRASH_LOOP, "exit 1", W1, count=3, started=True)


@pytest.mark.parametrize(
    ("reasons", "end"),
    [
        pytest.param([NO_GPU], ": Unschedulable: no GPU is free", id="the only reason"),
        pytest.param([NO_IMAGE, NO_GPU], ": Unschedulable: no GPU is free", id="others have nodes and no image"),
        pytest.param([FAULT, NO_GPU], ": Unschedulable: no GPU is free", id="others ran and had a fault"),
        pytest.param([NO_IMAGE], "+00:00", id="none of them is about a node"),
    ],
)
def test_a_withdrawn_job_says_why_its_replicas_had_no_nodes(reasons: list[JobPendingReason], end: str) -> None:
    status = replace(ONE_OF_TWO.status, pending_reasons=tuple(reasons))
    withdrawn = decide(a_plan(), replace(ONE_OF_TWO, status=status), *PODS, now=600, timing=TIMING)
    waiting = decide(a_plan(), next_record(ONE_OF_TWO, withdrawn), *PODS, now=602, timing=TIMING)
    for decision in (withdrawn, waiting):
        assert decision.status.message.endswith(end)
        assert decision.status.pending_reasons == ()


def test_jobs_that_compete_do_not_start_again_together() -> None:
    waits = []
    for number in range(50):
        plan = a_plan()
        plan = replace(plan, identity=replace(plan.identity, uid=f"u-{number}"))
        started = decide(plan, ONE_OF_TWO, *PODS, now=600, timing=TIMING).status.partial_start
        assert started.again_at is not None
        waits.append((started.again_at - at(600)).total_seconds())
    assert 5 <= min(waits) < 6
    assert 14 < max(waits) <= 15


def test_at_the_deadline_the_job_frees_its_nodes_and_waits() -> None:
    withdrawn = decide(a_plan(), ONE_OF_TWO, *PODS, now=600, timing=TIMING)
    assert {action.name for action in actions_of(withdrawn, DeletePod)} == {"job-worker-0", "job-worker-1"}
    status = withdrawn.status
    assert (status.phase, status.reason, status.reschedules) == (
        JobPhase.QUEUED,
        Reason.START_DEADLINE_EXCEEDED,
        1,
    )
    again_at = status.partial_start.again_at
    assert again_at is not None
    assert at(605) <= again_at <= at(615)
    assert again_at.isoformat(timespec="seconds") in status.message
    assert status.pending_since == T0  # the pending deadline goes on
    assert [entry.reason for entry in withdrawn.history] == [Reason.START_DEADLINE_EXCEEDED]

    record = next_record(ONE_OF_TWO, withdrawn)
    gone = frozenset({pod_uid(W0), pod_uid(W1)})
    stopped = decide(a_plan(), record, now=601, timing=TIMING, gone=gone)
    attempts = [replica.attempt for replica in stopped.replicas.values()]
    assert [(attempt.outcome, attempt.stopping) for attempt in attempts] == [
        (Outcome.STOPPED, StopReason.START_DEADLINE)
    ] * 2
    assert not actions_of(stopped, CreatePod)
    assert stopped.wake_at == again_at
    assert stopped.status.aggregate[ReplicaPhase.CREATING] == 2

    record = next_record(record, stopped)
    back = decide(a_plan(), record, now=615, timing=TIMING)
    assert [(replica.attempt.number, replica.restarts, replica.disruptions) for replica in back.replicas.values()] == [
        (2, 0, 0)
    ] * 2
    assert back.status.partial_start == PartialStart(withdrawals=1)
    assert {entry.reason for entry in back.history if entry.key} == {Reason.START_DEADLINE_EXCEEDED}
    created = decide(a_plan(), next_record(record, back), now=615, timing=TIMING)
    assert {action.key for action in actions_of(created, CreatePod)} == {W0, W1}


@pytest.mark.parametrize(
    ("plan", "status", "timing"),
    [
        pytest.param(a_plan(), running_status(), TIMING, id="it has run whole"),
        pytest.param(a_plan(least=1), PENDING, TIMING, id="an elastic job at its minimum"),
        pytest.param(a_plan(start_deadline=0), PENDING, TIMING, id="its annotation forbids it"),
        pytest.param(a_plan(), PENDING, Timing(start_deadline=None), id="the setting forbids it"),
        pytest.param(a_plan(paused=True), PENDING, TIMING, id="it is paused"),
    ],
)
def test_other_jobs_keep_their_nodes(plan: JobPlan, status: JobStatus, timing: Timing) -> None:
    partial = replace(status, partial_start=PartialStart(since=T0))
    decision = decide(plan, replace(ONE_OF_TWO, status=partial), *PODS, now=9_000, timing=timing)
    assert decision.status.partial_start == PartialStart()
    assert all(replica.attempt.stopping is not StopReason.START_DEADLINE for replica in decision.replicas.values())


@pytest.mark.parametrize(
    "replica",
    [
        pytest.param(a_replica(W1, an_attempt(key=W1, node="n1")), id="the other has a node"),
        pytest.param(ended(W1, Outcome.SUCCEEDED), id="the other has succeeded"),
        pytest.param(backing_off(W1), id="the other backs off"),
    ],
)
def test_no_node_is_missing(replica: Any) -> None:
    record = a_record(ONE_OF_TWO.status, a_replica(W0, an_attempt(node="n1")), replica)
    pods = [a_pod(W0)]
    if replica.attempt.pod_uid and replica.attempt.outcome is None:
        pods.append(a_pod(W1, ReplicaPhase.PENDING))
    decision = decide(a_plan(), record, *pods, now=601, timing=TIMING)
    assert decision.status.partial_start == PartialStart()


PS, TRAINERS = [Rank("ps", rank) for rank in range(2)], [Rank("trainer", rank) for rank in range(4)]


@pytest.mark.parametrize(
    ("placed", "done", "crashed", "is_partial"),
    [
        pytest.param(TRAINERS, [], [], True, id="trainers beyond the least are no parameter servers"),
        pytest.param([*TRAINERS[:3], PS[0]], [], [], True, id="every parameter server is needed"),
        pytest.param([*PS, TRAINERS[1]], [], [], True, id="and the least of the trainers"),
        pytest.param([*PS, *TRAINERS[2:]], [], [], False, id="it has what it needs"),
        pytest.param([PS[0], *TRAINERS[2:]], [PS[1]], [], False, id="one of them has succeeded"),
        pytest.param(PS, [], [], True, id="no trainer"),
        pytest.param([], PS, [], False, id="it holds nothing"),
        pytest.param([PS[0], *TRAINERS[:2]], [], [PS[1]], False, id="a parameter server that backs off needs no node"),
        pytest.param([PS[0], TRAINERS[0]], [], [PS[1]], True, id="the least of the trainers, beside it"),
        pytest.param(TRAINERS, [], [PS[1]], True, id="the other parameter server, beside it"),
    ],
)
def test_what_an_elastic_job_needs_counts_by_task(
    placed: list[Rank], done: list[Rank], crashed: list[Rank], *, is_partial: bool
) -> None:
    plan = a_plan({"ps": 2, "trainer": 4})
    plan = replace(plan, tasks=(plan.tasks[0], replace(plan.tasks[1], least=2)))
    nowhere = [key for key in (*PS, *TRAINERS) if key not in (*placed, *done, *crashed)]
    replicas = [
        *(a_replica(key, an_attempt(key=key, node="n1")) for key in placed),
        *(a_replica(key, an_attempt(key=key, phase=ReplicaPhase.CREATING)) for key in nowhere),
        *(ended(key, Outcome.SUCCEEDED) for key in done),
        *(backing_off(key) for key in crashed),
    ]
    pods = [*map(a_pod, placed), *(a_pod(key, ReplicaPhase.CREATING) for key in nowhere)]
    decision = decide(plan, a_record(PENDING, *replicas), *pods, now=5, timing=TIMING)
    assert decision.status.partial_start == PartialStart(since=at(5) if is_partial else None)


def test_a_job_without_any_node_holds_nothing() -> None:
    nowhere = a_record(
        ONE_OF_TWO.status, a_replica(W0, an_attempt(phase=ReplicaPhase.CREATING)), a_replica(W1, UNPLACED)
    )
    pods = (a_pod(W0, ReplicaPhase.CREATING), a_pod(W1, ReplicaPhase.CREATING))
    assert decide(a_plan(), nowhere, *pods, now=601, timing=TIMING).status.partial_start == PartialStart()


def test_the_job_waits_for_the_end_of_its_pods_before_it_starts_again() -> None:
    record = next_record(ONE_OF_TWO, decide(a_plan(), ONE_OF_TWO, *PODS, now=600, timing=TIMING))
    leaving = [replace(pod, deletion_deadline=at(700)) for pod in PODS]
    late = decide(a_plan(), record, *leaving, now=650, timing=TIMING)
    assert late.status.partial_start == record.status.partial_start
    assert not actions_of(late, CreatePod)


def test_the_job_waits_for_its_turn() -> None:
    start = PartialStart(withdrawals=1, again_at=at(600))
    stopped = [ended(key, Outcome.STOPPED, settled=False) for key in (W0, W1)]
    record = a_record(replace(PENDING, phase=JobPhase.QUEUED, partial_start=start), *stopped)
    waiting = decide(a_plan(), record, now=601, timing=TIMING, may_start=False)
    assert waiting.status.partial_start == start
    assert waiting.status.message.endswith("starts again after others that were withdrawn")
    assert waiting.wake_at == at(661)
    assert decide(a_plan(), record, now=601, timing=TIMING).status.partial_start == PartialStart(withdrawals=1)


def test_a_withdrawn_job_can_be_cancelled_and_paused() -> None:
    record = next_record(ONE_OF_TWO, decide(a_plan(), ONE_OF_TWO, *PODS, now=600, timing=TIMING))
    gone = frozenset({pod_uid(W0), pod_uid(W1)})
    cancelled = decide(a_plan(), record, now=601, timing=TIMING, gone=gone, intent=Intent(generation=1, cancel=True))
    assert cancelled.status.phase is JobPhase.CANCELLED
    paused = decide(a_plan(paused=True), record, now=601, timing=TIMING, gone=gone)
    assert (paused.status.phase, paused.status.partial_start) == (JobPhase.PAUSED, PartialStart())


def test_the_wait_grows_and_differs_between_jobs() -> None:
    waits = []
    for withdrawals in range(8):
        status = replace(PENDING, partial_start=PartialStart(since=T0, withdrawals=withdrawals))
        found = decide(a_plan(), replace(ONE_OF_TWO, status=status), *PODS, now=600, timing=TIMING).status.partial_start
        assert found.again_at is not None
        waits.append((found.again_at - at(600)).total_seconds())
    bounds = [min(10 * 2**doublings, 360) for doublings in range(8)]
    assert all(bound / 2 <= wait <= bound * 1.5 for wait, bound in zip(waits, bounds, strict=True))
    assert len({wait / bound for wait, bound in zip(waits, bounds, strict=True)}) == 8
