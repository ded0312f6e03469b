"""An admitted job that is scaled up asks Kueue for the further replicas, and runs on meanwhile."""

from dataclasses import replace

import pytest

from app.domain.plan import Rank
from app.domain.reconcile.queues import admissions, permit
from app.domain.status.observed import KueueState
from app.domain.vocabulary import JobPhase, PendingCode, Reason
from tests.domain.reconcile.queues.worlds import TEAM, a_world, counted_evictions, elastic, kueue_of, phase_of, run
from tests.support.model.cluster import World
from tests.support.model.kueue import ModelKueue
from tests.support.model.stories import come_to_rest, edit, intend
from tests.support.plans import a_plan, an_elastic_plan


def a_running_world(size: int, *, least: int | None = None) -> tuple[World, ModelKueue]:
    world = a_world(elastic(a_plan({"worker": size}, least=least, queue=TEAM)))
    run(world)
    kueue_of(world).admit()
    run(world)
    assert phase_of(world) == JobPhase.RUNNING
    return world, kueue_of(world)


def scale(world: World, size: int, *, admit: bool = False) -> None:
    before = len(world.plan.replicas)
    world.plan = an_elastic_plan(world.plan, "worker", size)
    world.record_scale_request("worker", before, size)
    run(world)
    if admit:
        kueue_of(world).admit()
        run(world)


def sizes(kueue: ModelKueue) -> dict[int, int]:
    return {number: workload.sizes.get("worker", 0) for number, workload in kueue.workloads.items()}


def ranks(world: World) -> list[int]:
    return sorted(pod.key.rank for pod in world.pods.values())


def test_the_further_replicas_wait_and_then_exactly_they_start() -> None:
    world, kueue = a_running_world(2)
    before = {pod.uid for pod in world.pods.values()}
    scale(world, 5)
    status = world.recorded.status
    assert (sizes(kueue), ranks(world), world.scaled) == ({0: 2, 1: 3}, [0, 1], [])
    assert (status.phase, status.reason) == (JobPhase.SCALING, Reason.SCALING)
    [reason] = status.pending_reasons
    assert (reason.code, reason.count, reason.replicas) == (
        PendingCode.WAITING_FOR_QUOTA,
        3,
        ("worker[2]", "worker[3]", "worker[4]"),
    )
    assert "3 to be admitted: WaitingForQuota: said Kueue" in status.message
    kueue.admit()
    run(world)
    assert phase_of(world) == JobPhase.RUNNING
    assert ranks(world) == [0, 1, 2, 3, 4]
    assert before < {pod.uid for pod in world.pods.values()}
    assert [record.outcome for record in world.scaled] == ["Reached"]
    assert all(workload.ready for workload in kueue.workloads.values())


@pytest.mark.parametrize(
    ("least", "lost", "unready"),
    [(None, 0, [0]), (None, 2, [1]), (1, 0, []), (2, 2, [1]), (3, 1, [0])],
)
def test_kueue_knows_which_workload_has_a_replica_that_must_start_again(
    least: int | None, lost: int, unready: list[int]
) -> None:
    world, kueue = a_running_world(2, least=least)
    scale(world, 3, admit=True)
    world.evict(next(pod for pod in world.pods.values() if pod.key.rank == lost))
    for _ in range(10):
        world.reconcile()
        world.advance(60)
    assert ranks(world) == [0, 1, 2]
    assert [number for number, workload in kueue.workloads.items() if not workload.ready] == unready
    run(world)
    assert all(workload.ready for workload in kueue.workloads.values())


def test_up_down_and_up_again() -> None:
    world, kueue = a_running_world(2)
    scale(world, 4, admit=True)
    scale(world, 6, admit=True)
    assert sizes(kueue) == {0: 2, 1: 2, 2: 2}
    counted = counted_evictions(world)
    # Of the second one a part is left, and the third one is removed.
    scale(world, 3)
    assert sizes(kueue) == {0: 2, 1: 2}
    assert (kueue.workloads[1].reclaimable, kueue.total()) == ({"worker": 1}, {"worker": 3})
    scale(world, 1)
    assert (sizes(kueue), kueue.total()) == ({0: 2}, {"worker": 1})
    scale(world, 4, admit=True)
    assert (sizes(kueue), kueue.total(), ranks(world)) == ({0: 2, 1: 3}, {"worker": 4}, [0, 1, 2, 3])
    assert counted == [], "jobgate itself has removed them"


def test_what_waits_is_changed_and_withdrawn() -> None:
    world, kueue = a_running_world(1)
    scale(world, 4)
    assert sizes(kueue) == {0: 1, 1: 3}
    scale(world, 2)
    assert sizes(kueue) == {0: 1, 1: 1}
    # It keeps its place in the queue, and the others follow it.
    scale(world, 5)
    assert sizes(kueue) == {0: 1, 1: 1}
    kueue.admit()
    run(world)
    assert (sizes(kueue), ranks(world)) == ({0: 1, 1: 1, 2: 3}, [0, 1])
    scale(world, 1)
    assert (sizes(kueue), kueue.total(), phase_of(world)) == ({0: 1}, {"worker": 1}, JobPhase.RUNNING)


@pytest.mark.parametrize("reason", ["Preempted", "PodsReadyTimeout", "Deactivated"])
def test_the_eviction_of_a_further_workload_stops_only_its_replicas(reason: str) -> None:
    world, kueue = a_running_world(2)
    scale(world, 4, admit=True)
    scale(world, 5, admit=True)
    counted = counted_evictions(world)
    if reason == "Deactivated":
        kueue.set_active(active=False, index=1)
    else:
        kueue.evict(reason, 1)
    run(world)
    status = world.recorded.status
    assert (ranks(world), kueue.total(), sizes(kueue)) == ([0, 1, 4], {"worker": 3}, {0: 2, 1: 2, 2: 1})
    assert (status.phase, status.pending_since) == (JobPhase.SCALING, None)
    assert ("another scale-up" in status.pending_reasons[0].message) == (reason == "Deactivated")
    assert f"{reason}: said Kueue" in next(entry.message for entry in world.history if entry.reason == "Evicting")
    assert {(one.restarts, one.disruptions) for one in world.recorded.replicas.values()} == {(0, 0)}
    kueue.activate()
    kueue.admit()
    run(world)
    assert (phase_of(world), ranks(world)) == (JobPhase.RUNNING, [0, 1, 2, 3, 4])
    numbers = {key.rank: one.attempt.number for key, one in world.recorded.replicas.items()}
    assert numbers == {0: 1, 1: 1, 2: 2, 3: 2, 4: 1}
    assert counted == [reason]
    kueue.evict(reason, 1)
    run(world)
    kueue.admit()
    run(world)
    assert (counted, phase_of(world)) == ([reason, reason], JobPhase.RUNNING)


@pytest.mark.parametrize("how", ["evict", "deactivate", "delete", "pause"])
def test_a_job_that_stops_is_queued_again_as_one_workload(how: str) -> None:
    world, kueue = a_running_world(2)
    scale(world, 3, admit=True)
    scale(world, 5)
    match how:
        case "evict":
            kueue.evict()
        case "deactivate":
            kueue.set_active(active=False)
        case "delete":
            kueue.delete()
        case _:
            edit(world, "pause")
    run(world)
    assert (ranks(world), kueue.total()) == ([], {})
    if how == "deactivate":
        assert (phase_of(world), sizes(kueue)) == (JobPhase.PAUSED, {0: 2})
        kueue.activate()
    elif how == "pause":
        assert (phase_of(world), sizes(kueue)) == (JobPhase.PAUSED, {})
        edit(world, "resume")
    run(world)
    assert (phase_of(world), sizes(kueue)) == (JobPhase.QUEUED, {0: 5})
    kueue.admit()
    run(world)
    assert (phase_of(world), ranks(world), sizes(kueue)) == (JobPhase.RUNNING, [0, 1, 2, 3, 4], {0: 5})


def test_what_an_earlier_admission_has_reclaimed_gets_quota_again() -> None:
    world, kueue = a_running_world(4)
    scale(world, 2)
    assert (kueue.workloads[0].reclaimable, ranks(world)) == ({"worker": 2}, [0, 1])
    kueue.evict()
    scale(world, 4)
    assert (phase_of(world), sizes(kueue), kueue.workloads[0].reclaimable) == (JobPhase.QUEUED, {0: 4}, {})
    assert kueue.made == 1, "the Workload has lost its place in the queue"
    kueue.admit()
    run(world)
    assert (phase_of(world), ranks(world), kueue.total()) == (JobPhase.RUNNING, [0, 1, 2, 3], {"worker": 4})


@pytest.mark.parametrize("intent", ["cancel", "remove", ""])
def test_nothing_is_left_after_the_end(intent: str) -> None:
    world, kueue = a_running_world(2)
    scale(world, 3, admit=True)
    scale(world, 5)
    if intent:
        intend(world, **{intent: True})
    else:
        scale(world, 3)
    come_to_rest(world)
    assert all(workload.finished and not workload.held for workload in kueue.workloads.values())
    assert (kueue.total(), world.recorded.status.quiet) == ({}, True)
    intend(world, remove=True)
    come_to_rest(world)
    assert (kueue.workloads, world.anchor, world.recorded.status.quiet) == ({}, False, True)


def test_a_job_that_is_scaled_up_before_it_runs_starts_with_what_is_admitted() -> None:
    world = a_world(replace(elastic(a_plan({"worker": 1}, queue=TEAM)), pending_deadline=60))
    run(world)
    kueue_of(world).admit()
    world.reconcile()
    scale(world, 2)
    status = world.recorded.status
    assert (status.phase, status.started_at is not None, status.pending_since) == (JobPhase.SCALING, True, None)
    assert ranks(world) == [0]


def test_an_admission_has_a_bounded_number_of_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (admissions, permit):
        monkeypatch.setattr(module, "MOST_FURTHER", 2)
    world, kueue = a_running_world(1)
    for size in (2, 3, 4):
        scale(world, size, admit=True)
    assert (sizes(kueue), ranks(world), phase_of(world)) == ({0: 1, 1: 1, 2: 1}, [0, 1, 2], JobPhase.SCALING)
    assert "may add no more" in world.recorded.status.message
    # A scale-down makes room for another one.
    scale(world, 2)
    scale(world, 4, admit=True)
    assert (sizes(kueue), phase_of(world)) == ({0: 1, 1: 1, 2: 2}, JobPhase.RUNNING)


def test_further_replicas_wait_while_kueue_cannot_be_read() -> None:
    world, kueue = a_running_world(1)
    kueue.state = KueueState.DENIED
    scale(world, 2)
    assert (ranks(world), phase_of(world)) == ([0], JobPhase.SCALING)
    assert "jobgate cannot read Kueue's objects" in world.recorded.status.message
    kueue.state = KueueState.LISTED
    scale(world, 3, admit=True)
    assert (sizes(kueue), phase_of(world)) == ({0: 1, 1: 2}, JobPhase.RUNNING)


def test_a_workload_that_is_not_on_record_is_removed() -> None:
    world, kueue = a_running_world(1)
    scale(world, 2)
    stray = kueue.workloads[1]
    scale(world, 1)
    assert sizes(kueue) == {0: 1}
    # Its create took effect after a scale-down had removed it.
    kueue.workloads[1] = replace(stray, held=True, deleting=False)
    kueue.admit()
    run(world)
    assert (sizes(kueue), kueue.total()) == ({0: 1}, {"worker": 1})
    assert Rank("worker", 1) in world.recorded.replicas
