# ruff: noqa: FBT001  hypothesis passes by name
"""Whatever happens to a job's cluster and controller, every pass holds the laws and the job comes to rest."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import JobPlan
from app.domain.reconcile.timing import Timing
from app.domain.vocabulary import CleanUpPolicy, JobPhase, Outcome, RestartPolicy, RestartScope, ScaleOutcome
from tests.support.model.cluster import World
from tests.support.model.reconcile_checks import check_reconcile
from tests.support.model.stories import (
    ANY_OP,
    NO_END_OP,
    SIZES,
    Op,
    apply,
    check_world,
    clear_faults,
    come_to_rest,
    come_to_rest_running,
    edit,
    intend,
    phases_until_running,
    play,
)
from tests.support.plans import a_plan, failure, restarting, success
from tests.support.plugins.properties import examples


@st.composite
def plans(draw: st.DrawFn) -> JobPlan:
    tasks = draw(st.sampled_from([{"worker": 1}, {"worker": 2}, {"ps": 1, "worker": 2}]))
    restart = restarting(
        draw(st.integers(0, 2)), draw(st.sampled_from(RestartPolicy)), scope=draw(st.sampled_from(RestartScope))
    )
    rules = draw(
        st.sampled_from([None, [success("worker0")], [success("worker0"), failure("worker0")], [failure("worker0")]])
    )
    plan = a_plan(
        tasks,
        rules,
        restart,
        clean_up=draw(st.sampled_from(CleanUpPolicy)),
        paused=draw(st.booleans()),
        suspends_rules=draw(st.sampled_from([False, False, False, True])),
        active_deadline=draw(st.sampled_from([None, None, 400])),
        pending_deadline=draw(st.sampled_from([None, None, 300])),
        ttl_after_finished=draw(st.sampled_from([None, None, 0, 60])),
    )
    elastic = draw(st.booleans())
    return replace(plan, tasks=tuple(replace(task, elastic=elastic) for task in plan.tasks))


TIMINGS = st.builds(
    Timing, disruption_limit=st.sampled_from([1, 10]), node_lost_after=st.sampled_from([None, 60.0, 300.0])
)
fast = examples(fixed=80, fuzz=200)


def a_world(plan: JobPlan, timing: Timing) -> World:
    return World(plan=plan, timing=timing, check=check_reconcile)


@fast
@given(plans(), TIMINGS, ANY_OP, st.booleans())
def test_every_sequence_of_events_leads_to_a_stable_state_and_removal_leaves_nothing(
    plan: JobPlan, timing: Timing, script: list[Op], warm: bool
) -> None:
    world = a_world(plan, timing)
    play(world, script, warm=warm)
    come_to_rest(world)
    check_world(world)
    status = world.recorded.status
    if world.plan.paused and not status.phase.is_terminal:
        assert status.phase is JobPhase.PAUSED
        assert not world.pods
    elif not world.plan.suspends_rules:
        assert status.phase.is_terminal
    intend(world, remove=True)
    come_to_rest(world)
    check_world(world)
    assert world.recorded.status.phase.is_terminal
    assert world.recorded.status.quiet
    assert world.recorded.status.gone_at is not None
    assert not world.pods
    assert not world.anchor


@fast
@given(plans(), TIMINGS, NO_END_OP, st.booleans())
def test_a_cancelled_job_keeps_nothing_running(plan: JobPlan, timing: Timing, script: list[Op], warm: bool) -> None:
    world = a_world(replace(plan, ttl_after_finished=None), timing)
    play(world, script, warm=warm)
    ended_before = world.recorded.status.phase.is_terminal
    intend(world, cancel=True)
    come_to_rest(world)
    check_world(world)
    if ended_before:
        return
    assert world.recorded.status.phase is JobPhase.CANCELLED
    assert all(pod.ended for pod in world.pods.values())
    assert world.recorded.status.quiet


@fast
@given(plans(), TIMINGS, NO_END_OP, NO_END_OP, st.booleans())
def test_pause_stops_everything_and_charges_nothing(
    plan: JobPlan, timing: Timing, before: list[Op], during: list[Op], warm: bool
) -> None:
    plan = replace(plan, active_deadline=None, pending_deadline=None, ttl_after_finished=None)
    world = a_world(plan, timing)
    play(world, before, warm=warm)
    clear_faults(world)
    edit(world, "pause")
    # A failure that is found together with the pause ends the job, once its evidence is stored.
    for _ in range(2):
        world.reconcile()
    if world.recorded.status.phase.is_terminal:
        return
    charged = _charges(world)
    succeeded = _succeeded(world)
    play(world, [op for op in during if op[0] not in ("pause", "resume", "refuse", "resize")])
    come_to_rest(world)
    assert world.recorded.status.phase is JobPhase.PAUSED
    assert not world.pods
    assert _charges(world) == charged
    edit(world, "resume")
    attempts = {key: replica.attempt.number for key, replica in world.recorded.replicas.items()}
    came_back = phases_until_running(world)
    check_world(world)
    assert came_back is JobPhase.RUNNING or came_back.is_terminal
    for key in succeeded:
        assert world.recorded.replicas[key].attempt.number == attempts[key]


def _charges(world: World) -> list[tuple[int, int]]:
    return [(replica.restarts, replica.disruptions) for replica in world.recorded.replicas.values()]


def _succeeded(world: World) -> list[Any]:
    """Ranks that are done: under the policy Always, one may be due for a restart."""
    return [
        key
        for key, replica in world.recorded.replicas.items()
        if replica.settled and replica.attempt.outcome is Outcome.SUCCEEDED
    ]


@fast
@given(SIZES)
def test_resizing_never_restarts_the_remaining_replicas(script: list[Op]) -> None:
    plan = a_plan({"worker": 2}, restart=restarting(0))
    plan = replace(plan, tasks=tuple(replace(task, elastic=True) for task in plan.tasks))
    world = a_world(plan, Timing())
    play(world, [], warm=True)
    lives = {0: 0, 1: 0}  # how often a rank of this number was wanted anew
    for name, index in script:
        size = len(world.plan.replicas)
        apply(world, (name, index))
        for rank in range(size, len(world.plan.replicas)):
            lives[rank] = lives.get(rank, 0) + 1
    come_to_rest_running(world)
    assert world.recorded.status.phase is JobPhase.RUNNING
    assert world.recorded.status.restarts == 0
    assert len(world.pods) == len(world.plan.replicas)
    for key in world.plan.replicas:
        assert world.recorded.replicas[key].attempt.number <= max(1, 1 + lives[key.rank])
    assert {record.seq for record in world.scaled} == set(range(1, world.requested + 1))
    if world.scaled:
        assert world.scaled[-1].outcome is ScaleOutcome.REACHED
