"""Edits of the queue and of the priority reach a job that waits, and not one that has its quota."""

from dataclasses import replace

import pytest

from app.domain.plan import PriorityClassKind, PriorityClassRef, QueuePlan
from app.domain.queueing.admission import PodSetAdmission, Queueing, TaskAdmission
from app.domain.queueing.workload_status import Evicted, ObservedWorkload, Unadmitted, Verdict
from app.domain.reconcile.actions import GiveBackQuota
from app.domain.reconcile.queues.permit import derive_permit
from app.domain.reconcile.values import Decision, Inputs
from app.domain.vocabulary import JobPhase, PendingCode
from tests.domain.reconcile.queues.worlds import LISTED, TEAM, a_world, kueue_of, phase_of, run
from tests.support.model.cluster import World
from tests.support.plans import a_plan, a_record, inputs, running_status

OTHER = QueuePlan(name="other")
WAITS = Unadmitted(code=PendingCode.WAITING_FOR_QUOTA, message="m")
CHECKED = replace(WAITS, holds_quota=True)
EVICTED = Evicted(reason="AdmissionCheck", message="m", holds_quota=True)
ADMISSION = {"worker": TaskAdmission(pod_set="worker", size=1, pods=PodSetAdmission())}


@pytest.mark.parametrize(
    ("requested", "verdict", "admission", "name"),
    [
        pytest.param(OTHER, WAITS, None, "other", id="it waits"),
        pytest.param(OTHER, CHECKED, None, "team", id="it has quota, and waits for admission checks"),
        pytest.param(OTHER, EVICTED, None, "other", id="it gives back the quota with which it waited for checks"),
        pytest.param(replace(OTHER, of_own_scheduler=True), WAITS, None, "team", id="no edit of the label"),
        pytest.param(OTHER, None, ADMISSION, "team", id="its pods run, and its Workload is gone"),
    ],
)
def test_which_jobs_move(
    requested: QueuePlan, verdict: Verdict | None, admission: dict[str, TaskAdmission] | None, name: str
) -> None:
    observed = {} if verdict is None else {0: ObservedWorkload(uid="w", queue="team", verdict=verdict)}
    record = a_record(running_status(queueing=Queueing(name="team", admission=admission)))
    found = derive_permit(inputs(a_plan(queue=requested), record, queue=replace(LISTED, workloads=observed))).record
    assert found is not None
    assert found.name == name


def test_an_edit_of_the_queue_moves_a_waiting_job() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    world.plan = replace(world.plan, queue=OTHER)
    run(world)
    assert kueue.workload is not None
    assert world.recorded.status.queueing is not None
    assert (kueue.workload.queue, kueue.made, world.recorded.status.queueing.name) == ("other", 2, "other")
    kueue.admit()
    run(world)
    world.plan = replace(world.plan, queue=TEAM)
    run(world)
    assert (kueue.workload.queue, phase_of(world)) == ("other", JobPhase.RUNNING)
    kueue.evict()
    run(world)
    assert (kueue.workload.queue, phase_of(world)) == ("team", JobPhase.QUEUED)
    world.plan = replace(world.plan, queue=None)
    run(world)
    assert (kueue.workload.queue, kueue.made) == ("team", 3)


def test_a_job_that_is_evicted_after_an_edit_does_not_wait_in_its_former_queue_again() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    world.plan = replace(world.plan, queue=OTHER)
    run(world)
    check = world.check

    def find_return(world: World, inputs: Inputs, decision: Decision) -> None:
        check(world, inputs, decision)
        returned = [action for action in decision.actions if isinstance(action, GiveBackQuota)]
        assert not returned, "Kueue may admit the Workload in its queue at once"

    world.check = find_return
    kueue.evict()
    run(world)
    assert kueue.workload is not None
    assert (kueue.workload.queue, kueue.made, phase_of(world)) == ("other", 2, JobPhase.QUEUED)


def test_a_workload_that_is_admitted_in_the_queue_before_an_edit_is_made_again() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    assert kueue.workload is not None
    kueue.workload.queue = "other"
    kueue.admit()
    run(world)
    assert (kueue.workload.queue, kueue.made, phase_of(world)) == ("team", 2, JobPhase.QUEUED)


def test_an_edit_of_the_class_changes_the_priority_of_a_waiting_job() -> None:
    high, low = (PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name=name) for name in ("high", "low"))
    world = a_world(a_plan(queue=TEAM))
    run(world)
    kueue = kueue_of(world)
    workload = kueue.workload
    assert workload is not None
    for requested in (high, low, None, high):
        world.plan = replace(world.plan, priority=requested)
        run(world)
        assert workload.priority == requested
    kueue.admit()
    run(world)
    world.plan = replace(world.plan, priority=low)
    run(world)
    assert workload.priority == high
    kueue.evict()
    run(world)
    assert workload.priority == low
