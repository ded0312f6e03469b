# ruff: noqa: FBT001  hypothesis passes by name
"""Whatever happens to a job's cluster and controller, every pass holds the laws and the job comes to rest."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.plan import JobPlan
from app.domain.status.observed import Refusal, Verdict
from app.domain.timing import Timing
from app.domain.vocabulary import (
    BudgetScope,
    CleanUpPolicy,
    Evidence,
    JobPhase,
    Outcome,
    PendingCode,
    ReplicaPhase,
    RestartPolicy,
    ScaleOutcome,
)
from tests.support.cluster_model import NODES, Faults, ModelPod, World
from tests.support.pass_checks import check_pass
from tests.support.plans import a_plan, failure, restarting, success

RESTING_PASSES = 400

Op = tuple[str, int]


def _pick(world: World, index: int) -> ModelPod | None:
    pods = [world.pods[name] for name in sorted(world.pods)]
    return pods[index % len(pods)] if pods else None


def _on_pod(world: World, name: str, index: int) -> None:
    pod = _pick(world, index)
    if pod is None:
        return
    match name:
        case "kubelet":
            world.kubelet(pod)
        case "exit":
            if pod.phase is ReplicaPhase.RUNNING:
                world.kubelet(pod, code=index % 3)
        case "foreign_delete":
            world.foreign_delete(pod)
        case "force_delete":
            world.force_delete(pod)
        case "evict":
            world.evict(pod)
        case "snatch":
            world.snatch(pod)


def _toggle_node(world: World, index: int) -> None:
    world.lost_nodes ^= {NODES[index % len(NODES)]}


def _refuse(world: World, index: int) -> None:
    key = list(world.plan.replicas)[index % len(world.plan.replicas)]
    verdict, code = [
        (Verdict.RETRY, PendingCode.QUOTA_EXCEEDED),
        (Verdict.WAIT, PendingCode.PREVIOUS_OBJECTS),
        (Verdict.FAIL, "RefusedByCluster"),
    ][index % 3]
    world.faults.refusals[key] = Refusal(verdict=verdict, code=code, message="no", since=world.now)


def _set_right(world: World) -> None:
    world.faults = Faults()
    world.lost_nodes.clear()


def _set_paused(world: World, *, paused: bool) -> None:
    """People edit a job only while it goes on."""
    if not world.recorded.status.phase.is_terminal:
        world.plan = replace(world.plan, paused=paused)


def _intend(world: World, **intent: bool) -> None:
    world.intent = replace(world.intent, **intent)  # type: ignore[arg-type]


CONTROLLER: dict[str, Any] = {
    "pass": lambda world, _: world.run_pass(),
    "crash": lambda world, _: world.run_pass(crash=True),
    "act_twice": lambda world, _: world.run_pass(times=2),
    "restart": lambda world, _: world.restart_controller(),
    "blind": lambda world, _: world.go_blind(),
    "sync": lambda world, _: world.sync(),
    "lag": lambda world, index: setattr(world.faults, "lagging", bool(index % 2)),
    "advance": lambda world, index: world.advance(float(index * 30)),
    "land": lambda world, _: world.land(),
}
DISTURBANCES: dict[str, Any] = {
    "lose_answer": lambda world, _: setattr(world.faults, "create", "lost"),
    "send_late": lambda world, _: setattr(world.faults, "create", "late"),
    "node": _toggle_node,
    "refuse": _refuse,
    "set_right": lambda world, _: _set_right(world),
    "evidence": lambda world, index: setattr(world.faults, "evidence", list(Evidence)[index % 3]),
}


def _resize(world: World, index: int) -> None:
    """People edit a job only while it goes on."""
    if not world.recorded.status.phase.is_terminal:
        world.resize("worker", 1 + index % 3)


PEOPLE: dict[str, Any] = {
    "resize": _resize,
    "pause": lambda world, _: _set_paused(world, paused=True),
    "resume": lambda world, _: _set_paused(world, paused=False),
    "cancel": lambda world, _: _intend(world, cancel=True),
    "remove": lambda world, _: _intend(world, remove=True),
}
ON_POD = ("kubelet", "exit", "foreign_delete", "force_delete", "evict", "snatch")
COMMON = ("pass", "pass", "kubelet", "kubelet", "exit", "advance")


def ops(*names: str) -> st.SearchStrategy[list[Op]]:
    return st.lists(st.tuples(st.sampled_from(names), st.integers(0, 12)), max_size=45)


ANY_OP = ops(*COMMON, *COMMON, *CONTROLLER, *DISTURBANCES, *ON_POD, *PEOPLE, "pause", "resume", "resize", "resize")
NO_END_OP = ops(*COMMON, *COMMON, *CONTROLLER, *DISTURBANCES, *ON_POD, "pause", "resume", "resize", "resize")


def apply(world: World, op: Op) -> None:
    name, index = op
    if name in ON_POD:
        _on_pod(world, name, index)
        return
    known = {**CONTROLLER, **DISTURBANCES, **PEOPLE}
    known[name](world, index)


def come_to_rest(world: World) -> None:
    """Nothing more goes wrong: kubelets work, processes exit 0, and time passes to each `wake_at`."""
    _set_right(world)
    world.land()
    for _ in range(RESTING_PASSES):
        decision = world.run_pass()
        if decision.again:
            continue
        moved = _step_kubelets(world)
        if moved or decision.dirty or decision.actions:
            continue
        if decision.wake_at is None:
            return
        assert decision.wake_at > world.now
        world.now = decision.wake_at
    pytest.fail(f"the job never comes to rest: {world.recorded.status}")


def _step_kubelets(world: World) -> bool:
    before = {name: pod.seen(set()) for name, pod in world.pods.items()}
    for name in list(before):
        world.kubelet(world.pods[name])
    return before != {name: pod.seen(set()) for name, pod in world.pods.items()}


@st.composite
def plans(draw: st.DrawFn) -> JobPlan:
    tasks = draw(st.sampled_from([{"worker": 1}, {"worker": 2}, {"ps": 1, "worker": 2}]))
    restart = restarting(
        draw(st.integers(0, 2)), draw(st.sampled_from(RestartPolicy)), scope=draw(st.sampled_from(BudgetScope))
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
fast = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def a_world(plan: JobPlan, timing: Timing) -> World:
    return World(plan=plan, timing=timing, check=check_pass)


def play(world: World, script: list[Op], *, warm: bool = False) -> None:
    """A warm world has all its pods running before the script begins; most events are followed by a pass."""
    for _ in range(3 * warm):
        world.run_pass()
        for pod in list(world.pods.values()):
            if pod.phase is not ReplicaPhase.RUNNING:
                world.kubelet(pod)
    for op in script:
        apply(world, op)
        if op[0] not in CONTROLLER and op[1] % 4:
            world.run_pass()


def check_world(world: World) -> None:
    """Of the whole story: one pod an attempt, no shared budget overdrawn, no request settled twice or left open."""
    settled = [record.seq for record in world.scaled]
    assert len(settled) == len(set(settled))
    if world.recorded.status.phase.is_terminal:
        assert len(settled) == world.asked
    assert all(len(uids) <= 1 for uids in world.uids.values()), world.uids
    for task in world.plan.tasks:
        if task.restart.scope is BudgetScope.JOB and task.restart.limit is not None:
            assert world.recorded.status.restarts <= task.restart.limit


@fast
@given(plans(), TIMINGS, ANY_OP, st.booleans())
def test_every_story_comes_to_rest_and_removal_leaves_nothing(
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
    _intend(world, remove=True)
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
    _intend(world, cancel=True)
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
    _set_right(world)
    _set_paused(world, paused=True)
    world.run_pass()
    if world.recorded.status.phase.is_terminal:
        return
    charged = _charges(world)
    succeeded = _succeeded(world)
    play(world, [op for op in during if op[0] not in ("pause", "resume", "refuse", "resize")])
    come_to_rest(world)
    assert world.recorded.status.phase is JobPhase.PAUSED
    assert not world.pods
    assert _charges(world) == charged
    _set_paused(world, paused=False)
    attempts = {key: replica.attempt.number for key, replica in world.recorded.replicas.items()}
    came_back = _phases_until_running(world)
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


def _phases_until_running(world: World) -> JobPhase:
    """Bring pods up, and let none exit, until the job runs again."""
    for _ in range(RESTING_PASSES):
        decision = world.run_pass()
        if decision.status.phase is JobPhase.RUNNING or decision.status.phase.is_terminal:
            return decision.status.phase
        assert decision.status.phase is JobPhase.RESUMING
        for pod in list(world.pods.values()):
            if pod.phase is not ReplicaPhase.RUNNING or pod.deleting:
                world.kubelet(pod)
        if decision.wake_at is not None:
            world.now = max(world.now, decision.wake_at)
    return world.recorded.status.phase


SIZES = st.lists(
    st.tuples(
        st.sampled_from(["pass", "crash", "act_twice", "restart", "sync", "start", "send_late", "land"]), st.just(0)
    )
    | st.tuples(st.just("resize"), st.integers(0, 5)),
    max_size=40,
)


@fast
@given(SIZES)
def test_a_change_of_size_restarts_nobody_who_stays(script: list[Op]) -> None:
    plan = a_plan({"worker": 2}, restart=restarting(0))
    plan = replace(plan, tasks=tuple(replace(task, elastic=True) for task in plan.tasks))
    world = a_world(plan, Timing())
    play(world, [], warm=True)
    lives = {0: 0, 1: 0}  # how often a rank of this number was wanted anew
    for name, index in script:
        size = len(world.plan.replicas)
        apply_size(world, (name, index))
        for rank in range(size, len(world.plan.replicas)):
            lives[rank] = lives.get(rank, 0) + 1
    _set_right(world)
    world.land()
    for _ in range(RESTING_PASSES):
        decision = world.run_pass()
        if not (_start(world) or decision.dirty or decision.actions):
            break
    assert world.recorded.status.phase is JobPhase.RUNNING
    assert world.recorded.status.restarts == 0
    assert len(world.pods) == len(world.plan.replicas)
    for key in world.plan.replicas:
        assert world.recorded.replicas[key].attempt.number <= max(1, 1 + lives[key.rank])
    assert {record.seq for record in world.scaled} == set(range(1, world.asked + 1))
    if world.scaled:
        assert world.scaled[-1].outcome is ScaleOutcome.REACHED


def apply_size(world: World, op: Op) -> None:
    if op[0] == "start":
        _start(world)
    else:
        apply(world, op)


def _start(world: World) -> bool:
    """Kubelets start what is new and end what has to go; nothing exits by itself."""
    moving = [pod for pod in world.pods.values() if pod.phase is not ReplicaPhase.RUNNING or pod.deleting]
    for pod in moving:
        world.kubelet(pod)
    return bool(moving)
