# ruff: noqa: FBT001  hypothesis passes by name
"""A job with a queue runs only within its admission, and gives its quota back only when no pod is left."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import GangApi, GangPlan, JobPlan
from app.domain.queueing.admission import Admitted, PodSetAdmission, Queueing, RecordedWorkload, TaskAdmission
from app.domain.queueing.workload import pod_sets
from app.domain.queueing.workload_status import Evicted, ObservedWorkload, Unadmitted
from app.domain.reconcile.actions import CreatePod, DeletePod, EnsureWorkload, FinishWorkload, RemoveWorkload
from app.domain.reconcile.queues.admissions import judge
from app.domain.status.observed import AlteredObject, KueueState, ObservedQueue
from app.domain.status.records import JobStatus
from app.domain.vocabulary import CleanUpPolicy, JobPhase, PendingCode, Reason, RestartPolicy
from tests.domain.reconcile.queues.worlds import LISTED, TEAM, a_world, elastic, kueue_of, phase_of, run
from tests.support.model.cluster import World
from tests.support.model.stories import Op, apply, check_world, come_to_rest, edit, intend
from tests.support.plans import (
    T0,
    W0,
    a_plan,
    a_pod,
    a_record,
    a_replica,
    actions_of,
    decide,
    failure,
    restarting,
    running_status,
    success,
)
from tests.support.plugins.properties import examples


def test_a_life() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    status = world.recorded.status
    assert (status.phase, status.pending_since, kueue.made) == (JobPhase.QUEUED, None, 1)
    assert [reason.count for reason in status.pending_reasons] == [2]
    assert not world.pods
    kueue.admit()
    run(world)
    assert phase_of(world) == JobPhase.RUNNING
    assert kueue.workload is not None
    assert kueue.workload.ready

    kueue.evict()
    run(world)
    status = world.recorded.status
    assert (status.phase, status.restarts, kueue.workload.reserved) == (JobPhase.QUEUED, 0, False)
    assert not world.pods
    assert [(entry.key, entry.reason, entry.message) for entry in world.history[-2:]] == [
        (None, "Evicting", "Preempted: said Kueue; 2 pods are still terminating"),
        (None, "WaitingForQuota", "Preempted: said Kueue"),
    ]
    kueue.admit()
    run(world)
    assert phase_of(world) == JobPhase.RUNNING
    assert {replica.attempt.number for replica in world.recorded.replicas.values()} == {2}
    assert {(one.restarts, one.disruptions) for one in world.recorded.replicas.values()} == {(0, 0)}

    kueue.set_active(active=False)
    run(world)
    status = world.recorded.status
    assert (status.phase, status.reason, world.pods) == (JobPhase.PAUSED, Reason.DEACTIVATED, {})
    # A resume increases the generation.
    world.plan = replace(world.plan, identity=replace(world.plan.identity, generation=2))
    run(world)
    assert phase_of(world) == JobPhase.QUEUED
    kueue.admit()
    come_to_rest(world)
    assert phase_of(world) == JobPhase.SUCCEEDED
    assert kueue.workload.finished
    assert not kueue.workload.held
    intend(world, remove=True)
    come_to_rest(world)
    assert not kueue.workloads
    assert (world.anchor, world.recorded.status.quiet) == (False, True)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Preempted", "WaitingForQuota"),
        ("PodsReadyTimeout", "RequeueBackOff"),
        ("AdmissionCheck", "AdmissionChecks"),
        ("LocalQueueStopped", "QueueStopped"),
        ("ClusterQueueStopped", "QueueStopped"),
        ("WorkloadDeleted", "WaitingForKueue"),
    ],
)
def test_the_wait_after_an_eviction_has_the_code_of_its_reason(reason: str, code: str) -> None:
    world = a_world(a_plan(queue=TEAM))
    run(world)
    for change in (kueue_of(world).admit, lambda: kueue_of(world).evict(reason)):
        change()
        run(world)
    rows = [entry.reason for entry in world.history if entry.message == f"{reason}: said Kueue"]
    assert rows == [code]


def test_the_times_of_a_queue_are_those_of_its_last_wait() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)

    def times() -> list[float | None]:
        """When the job was queued, admitted and evicted, in seconds since the beginning."""
        record = world.recorded.status.queueing
        assert record is not None
        moments = (record.queued_at, record.admitted_at, record.evicted_at)
        return [None if moment is None else (moment - T0).total_seconds() for moment in moments]

    changes = (
        (kueue.admit, [0, 60, None]),
        (kueue.evict, [120, None, 120]),
        (kueue.admit, [120, 180, 120]),
        (kueue.evict, [240, None, 240]),
        (lambda: kueue.set_active(active=False), [240, None, 300]),
        (lambda: kueue.set_active(active=True), [360, None, 300]),
    )
    run(world)
    assert times() == [0, None, None]
    for change, expected in changes:
        world.advance(60)
        change()
        run(world)
        run(world)
        assert times() == expected


def test_what_is_not_admitted_waits_while_the_rest_runs() -> None:
    plan = a_plan({"worker": 1}, queue=TEAM)
    world = a_world(elastic(plan))
    run(world)
    kueue_of(world).admit()
    run(world)
    world.request_size(2)
    assert len(world.plan.replicas) == 3
    run(world)
    assert len(world.running()) == 1
    assert phase_of(world) == JobPhase.SCALING
    assert not world.scaled
    kueue_of(world).evict()
    run(world)
    kueue_of(world).admit()
    run(world)
    assert len(world.running()) == 3
    assert [record.outcome for record in world.scaled] == ["Reached"]


def test_a_job_whose_admitted_replicas_have_ended_is_queued_for_the_others() -> None:
    plan = a_plan({"worker": 2}, queue=TEAM)
    world = a_world(elastic(plan))
    run(world)
    kueue_of(world).admit()
    run(world)
    world.request_size(2)
    for _ in range(2):
        kueue_of(world).admit()
        come_to_rest(world)
    assert phase_of(world) == JobPhase.SUCCEEDED
    assert kueue_of(world).made == 2


@pytest.mark.parametrize(
    ("queue", "plan", "code"),
    [
        (ObservedQueue(), a_plan(queue=TEAM), None),
        (ObservedQueue(required=True), a_plan(queue=TEAM), PendingCode.WAITING_FOR_KUEUE),
        (ObservedQueue(required=True), a_plan(), None),
        (ObservedQueue(state=KueueState.UNKNOWN), a_plan(), PendingCode.WAITING_FOR_KUEUE),
        (ObservedQueue(state=KueueState.DENIED), a_plan(), None),
        (ObservedQueue(state=KueueState.DENIED), a_plan(queue=TEAM), PendingCode.WAITING_FOR_KUEUE),
        (LISTED, a_plan(), None),
        (LISTED, a_plan(queue=TEAM), PendingCode.WAITING_FOR_KUEUE),
        (replace(LISTED, local_queues=frozenset({"default"})), a_plan(), PendingCode.WAITING_FOR_KUEUE),
    ],
)
def test_which_jobs_wait(queue: ObservedQueue, plan: JobPlan, code: PendingCode | None) -> None:
    decision = decide(plan, queue=queue)
    assert bool(actions_of(decision, CreatePod)) == (code is None)
    assert [reason.code for reason in decision.status.pending_reasons] == ([] if code is None else [code])
    is_queued = code is not None and queue.state is KueueState.LISTED
    wanted = EnsureWorkload(queue="default" if queue.local_queues else "team")
    assert actions_of(decision, EnsureWorkload) == ([wanted] if is_queued else [])


def test_a_new_job_whose_workload_is_admitted_starts_at_once() -> None:
    plan = a_plan(queue=TEAM)
    sizes = {item.name: item.count for item in pod_sets(plan)}
    verdict = Admitted(pod_sets={name: PodSetAdmission() for name in sizes})
    decision = decide(
        plan,
        queue=replace(LISTED, workloads={0: ObservedWorkload(uid="w", queue="team", verdict=verdict, sizes=sizes)}),
    )
    assert actions_of(decision, CreatePod)
    assert decision.status.phase is JobPhase.CREATING


def test_the_own_scheduler_of_a_kind_keeps_its_queue() -> None:
    plan = a_plan(queue=replace(TEAM, of_own_scheduler=True))
    gang = GangPlan(members=frozenset({W0}), apis=(GangApi.TENSORSTACK,), api=GangApi.TENSORSTACK)
    without_scheduler = replace(plan, gang=replace(gang, api=None))
    with_queue = replace(LISTED, local_queues=frozenset({"team"}))
    assert actions_of(decide(replace(plan, gang=gang), queue=with_queue), CreatePod)
    assert actions_of(decide(without_scheduler, queue=LISTED), CreatePod)
    assert actions_of(decide(without_scheduler, queue=with_queue), EnsureWorkload)


@pytest.mark.parametrize("state", [KueueState.UNKNOWN, KueueState.DENIED, KueueState.ABSENT])
def test_what_is_recorded_holds_while_kueue_cannot_be_read(state: KueueState) -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.state = state
    run(world)
    assert not world.pods
    kueue.state = KueueState.LISTED
    kueue.admit()
    run(world)
    kueue.state = state
    world.restart_controller()
    decision = world.reconcile()
    assert not actions_of(decision, DeletePod)
    assert phase_of(world) == JobPhase.RUNNING


ALTERED = AlteredObject(api_version="v1", kind="Pod", name="job-worker-1", uid="u", finalizers=(), message="altered")


@pytest.mark.parametrize("altered", [(), (ALTERED,)])
def test_a_pod_that_the_cluster_altered_holds_quota_until_it_is_gone(altered: tuple[AlteredObject, ...]) -> None:
    """The mirror does not show such a pod, so nothing else says that it may run."""
    admitted = ObservedWorkload(
        uid="w", queue="team", verdict=Admitted(pod_sets={"worker": PodSetAdmission()}), sizes={"worker": 1}
    )
    queue = replace(LISTED, workloads={0: admitted, 1: admitted})
    first = TaskAdmission(pod_set="worker", size=1, pods=PodSetAdmission())
    left = RecordedWorkload(number=1, tasks={"worker": replace(first, from_rank=1)}, admitted=True)
    queueing = Queueing(name="team", admission={"worker": first}, further=(left,))
    plan, frees = a_plan({"worker": 1}, queue=TEAM), not altered

    live = a_record(running_status(queueing=queueing), a_replica(W0))
    removed = actions_of(decide(plan, live, a_pod(), queue=queue, altered=altered), RemoveWorkload)
    assert removed == ([RemoveWorkload(number=1)] if frees else [])
    ended = a_record(running_status(phase=JobPhase.FAILED, finished_at=T0, queueing=queueing))
    finished = actions_of(decide(plan, ended, queue=queue, altered=altered), FinishWorkload)
    assert [action.number for action in finished] == ([0, 1] if frees else [])


@pytest.mark.parametrize(
    ("finished", "held", "is_written"),
    [(False, False, True), (False, True, True), (True, True, True), (True, False, False)],
)
def test_an_ended_job_leaves_a_workload_that_is_finished_and_not_held(
    finished: bool, held: bool, is_written: bool
) -> None:
    verdict = Admitted(pod_sets={"worker": PodSetAdmission()})
    left = ObservedWorkload(uid="w", queue="team", verdict=verdict, sizes={"worker": 1}, finished=finished, held=held)
    ended = a_record(running_status(phase=JobPhase.FAILED, finished_at=T0, queueing=Queueing(name="team")))
    found = decide(a_plan({"worker": 1}, queue=TEAM), ended, queue=replace(LISTED, workloads={0: left}))
    assert bool(actions_of(found, FinishWorkload)) == is_written


@pytest.mark.parametrize("holds_quota", [True, False])
def test_an_admission_is_lost_with_its_quota(holds_quota: bool) -> None:
    waits = Unadmitted(code=PendingCode.WAITING_FOR_QUOTA, message="m", holds_quota=holds_quota)
    observed = ObservedWorkload(uid="w", queue="team", verdict=waits, sizes={"worker": 1})
    lost = Evicted(reason="AdmissionLost", message="m", holds_quota=False)
    known = RecordedWorkload(number=0, tasks={}, admitted=True)
    assert judge(known, observed, "team", ()) == (waits if holds_quota else lost)
    assert judge(replace(known, admitted=False), replace(observed, sizes={}), "team", ()) == waits


def test_a_job_that_ran_before_kueue_was_installed_is_not_queued() -> None:
    recorded = a_record(running_status(), a_replica(W0))
    assert not actions_of(decide(a_plan({"worker": 1}, queue=TEAM), recorded, a_pod(), queue=LISTED), EnsureWorkload)
    assert JobStatus().queueing is None


KUEUE: dict[str, Any] = {
    "admit": lambda kueue, _: kueue.admit(),
    "preempt": lambda kueue, index: kueue.evict("Preempted", index),
    "time_out": lambda kueue, index: kueue.evict("PodsReadyTimeout", index),
    "deactivate": lambda kueue, index: kueue.set_active(active=False, index=index),
    "activate": lambda kueue, _: kueue.activate(),
    "delete_workload": lambda kueue, index: kueue.delete(index),
    "outage": lambda kueue, index: setattr(kueue, "state", (KueueState.LISTED, KueueState.UNKNOWN)[index % 2]),
}
# A create that takes effect late is not among them: its pod is deleted, but it has no quota meanwhile.
OPS = ("reconcile", "kubelet", "exit", "advance", "crash", "act_twice", "restart", "foreign_delete", "evict")
STORY = st.lists(
    st.tuples(
        st.sampled_from([*KUEUE, "admit", "admit", *OPS, *OPS, "pause", "resume", "resize", "resize", "resize"]),
        st.integers(0, 12),
    ),
    max_size=60,
)


def play(world: World, script: list[Op], *, warm: bool) -> None:
    if warm:
        run(world)
        kueue_of(world).admit()
        run(world)
    for name, index in script:
        if name in KUEUE:
            KUEUE[name](kueue_of(world), index)
        else:
            apply(world, (name, index))
        if index % 3:
            world.reconcile()


def finish(world: World) -> None:
    """Let Kueue admit the job as often as it waits, until it comes to rest."""
    kueue = kueue_of(world)
    kueue.state = KueueState.LISTED
    for _ in range(20):
        come_to_rest(world)
        kueue.activate()
        if not kueue.workloads and world.recorded.status.reason is Reason.DEACTIVATED:
            # The deactivated Workload was deleted: only its user resumes the job.
            edit(world, "resume")
        kueue.admit()
        decision = world.reconcile()
        if not (decision.dirty or decision.actions):
            return
    pytest.fail(f"the job never comes to rest: {world.recorded.status}")


@st.composite
def plans(draw: st.DrawFn) -> JobPlan:
    tasks = draw(st.sampled_from([{"worker": 1}, {"worker": 2}, {"ps": 1, "worker": 2}]))
    restart = restarting(draw(st.integers(0, 2)), draw(st.sampled_from(RestartPolicy)))
    rules = draw(st.sampled_from([None, None, [success("worker0"), failure("worker0")]]))
    plan = a_plan(tasks, rules, restart, queue=TEAM, clean_up=draw(st.sampled_from(CleanUpPolicy)))
    return elastic(plan) if draw(st.booleans()) else plan


@examples(fixed=150, fuzz=400)
@given(plans(), STORY, st.booleans(), st.booleans())
def test_no_pod_without_quota_and_no_quota_without_pods(
    plan: JobPlan, script: list[Op], warm: bool, cancel: bool
) -> None:
    world = a_world(plan)
    play(world, script, warm=warm)
    if cancel:
        intend(world, cancel=True)
    finish(world)
    check_world(world)
    status, kueue = world.recorded.status, kueue_of(world)
    if world.plan.paused and not status.phase.is_terminal:
        assert status.phase is JobPhase.PAUSED
        assert not kueue.workloads
    else:
        assert status.phase.is_terminal
        assert all(workload.finished and not workload.held for workload in kueue.workloads.values())
    intend(world, remove=True)
    finish(world)
    assert (kueue.workloads, world.pods, world.anchor) == ({}, {}, False)
    assert world.recorded.status.quiet
