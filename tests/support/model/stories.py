"""Stories of a job on the model cluster: sequences of operations, and how the job comes to rest afterwards."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from app.domain.status.ends import is_loss
from app.domain.status.failures import cause_of
from app.domain.status.observed import ClusterRefusal, RefusalVerdict
from app.domain.vocabulary import Evidence, JobPhase, PendingCode, Reason, ReplicaPhase, RestartScope
from tests.support.model.cluster import NODES, World
from tests.support.model.faults import Faults
from tests.support.model.pods import ModelPod

FAILURE_REASONS = (Reason.RESTARTING, Reason.DISRUPTED, Reason.REPLICA_FAILED)
MAX_RECONCILES = 400  # far more than any story needs: a job that reaches it does not come to rest

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
                world.kubelet(pod, *world.exits[index % len(world.exits)])
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
        (RefusalVerdict.RETRY, PendingCode.QUOTA_EXCEEDED),
        (RefusalVerdict.WAIT, PendingCode.PREVIOUS_OBJECTS),
        (RefusalVerdict.FAIL, "RefusedByCluster"),
    ][index % 3]
    world.faults.refusals[key] = ClusterRefusal(verdict=verdict, code=code, message="no", since=world.now)


def clear_faults(world: World) -> None:
    world.faults = Faults()
    world.lost_nodes.clear()


def edit(world: World, what: str, index: int = 0) -> None:
    """Edit the job, unless it has ended."""
    if world.recorded.status.phase.is_terminal:
        return
    if what == "resize":
        world.request_size(index)
    else:
        world.set_paused(paused=what == "pause")


def intend(world: World, **intent: bool) -> None:
    world.intent = replace(world.intent, **intent)  # type: ignore[arg-type]


CONTROLLER: dict[str, Any] = {
    "reconcile": lambda world, _: world.reconcile(),
    "crash": lambda world, _: world.reconcile(crash=True),
    "act_twice": lambda world, _: world.reconcile(times=2),
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
    "clear_faults": lambda world, _: clear_faults(world),
    "evidence": lambda world, index: setattr(world.faults, "evidence", list(Evidence)[index % 3]),
}
PEOPLE: dict[str, Any] = {
    "resize": lambda world, index: edit(world, "resize", index),
    "pause": lambda world, _: edit(world, "pause"),
    "resume": lambda world, _: edit(world, "resume"),
    "cancel": lambda world, _: intend(world, cancel=True),
    "remove": lambda world, _: intend(world, remove=True),
}
ON_POD = ("kubelet", "exit", "foreign_delete", "force_delete", "evict", "snatch")
# Repeated names are drawn more often, so that pods start and end in most stories.
COMMON = ("reconcile", "reconcile", "kubelet", "kubelet", "exit", "advance")


def ops(*names: str) -> st.SearchStrategy[list[Op]]:
    return st.lists(st.tuples(st.sampled_from(names), st.integers(0, 12)), max_size=45)


ANY_OP = ops(*COMMON, *COMMON, *CONTROLLER, *DISTURBANCES, *ON_POD, *PEOPLE, "pause", "resume", "resize", "resize")
NO_END_OP = ops(*COMMON, *COMMON, *CONTROLLER, *DISTURBANCES, *ON_POD, "pause", "resume", "resize", "resize")
# Changes of size, with operations that neither end a process nor disturb the cluster.
SIZES = st.lists(
    st.tuples(
        st.sampled_from(["reconcile", "crash", "act_twice", "restart", "sync", "start", "send_late", "land"]),
        st.just(0),
    )
    | st.tuples(st.just("resize"), st.integers(0, 5)),
    max_size=40,
)


def apply(world: World, op: Op) -> None:
    name, index = op
    if name in ON_POD:
        _on_pod(world, name, index)
        return
    if name == "start":
        start(world)
        return
    known = {**CONTROLLER, **DISTURBANCES, **PEOPLE}
    known[name](world, index)


def play(world: World, script: list[Op], *, warm: bool = False) -> None:
    """Run the script, with a reconcile after most events. With `warm`, all pods run before it begins."""
    for _ in range(3 * warm):
        world.reconcile()
        for pod in list(world.pods.values()):
            if pod.phase is not ReplicaPhase.RUNNING:
                world.kubelet(pod)
    for op in script:
        apply(world, op)
        if op[0] not in CONTROLLER and op[1] % 4:
            world.reconcile()


def come_to_rest(world: World) -> None:
    """Reconcile without faults until nothing changes: processes exit with 0, and time passes to each `wake_at`."""
    clear_faults(world)
    world.land()
    for _ in range(MAX_RECONCILES):
        decision = world.reconcile()
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


def start(world: World) -> bool:
    """Let kubelets start new pods and end deleted ones. No process exits by itself."""
    moving = [pod for pod in world.pods.values() if pod.phase is not ReplicaPhase.RUNNING or pod.deleting]
    for pod in moving:
        world.kubelet(pod)
    return bool(moving)


def come_to_rest_running(world: World) -> None:
    """Reconcile without faults until nothing changes. No process exits."""
    clear_faults(world)
    world.land()
    for _ in range(MAX_RECONCILES):
        decision = world.reconcile()
        if not (start(world) or decision.dirty or decision.actions):
            return
    pytest.fail(f"the job never comes to rest: {world.recorded.status}")


def phases_until_running(world: World) -> JobPhase:
    """Start pods until the job runs again, and return its phase. No process exits."""
    for _ in range(MAX_RECONCILES):
        decision = world.reconcile()
        if decision.status.phase is JobPhase.RUNNING or decision.status.phase.is_terminal:
            return decision.status.phase
        assert decision.status.phase is JobPhase.RESUMING
        for pod in list(world.pods.values()):
            if pod.phase is not ReplicaPhase.RUNNING or pod.deleting:
                world.kubelet(pod)
        if decision.wake_at is not None:
            world.now = max(world.now, decision.wake_at)
    return world.recorded.status.phase


def check_world(world: World) -> None:
    """Check the whole story: one pod for each attempt, no restart limit exceeded, every scale request settled once."""
    settled = [record.seq for record in world.scaled]
    assert len(settled) == len(set(settled))
    if world.recorded.status.phase.is_terminal:
        assert len(settled) == world.requested
    assert all(len(uids) <= 1 for uids in world.uids.values()), world.uids
    for task in world.plan.tasks:
        if task.restart.scope is RestartScope.JOB and task.restart.limit is not None:
            assert world.recorded.status.restarts <= task.restart.limit
    _check_failures(world)


def _check_failures(world: World) -> None:
    """Check that the history has a row about each failed attempt, and that the end names the failure that caused it."""
    explained = {(entry.key, entry.attempt) for entry in world.history if entry.reason in FAILURE_REASONS}
    failed = {where for where, attempt in world.attempts.items() if is_loss(attempt)}
    assert failed <= explained, failed - explained
    status = world.recorded.status
    if status.phase is JobPhase.FAILED and status.ended_by.failed + status.ended_by.disrupted:
        assert any(cause_of(failure) in status.message for failure in status.ended_by.first)
        assert status.first_failure is not None
