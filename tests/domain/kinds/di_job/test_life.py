"""What becomes of a DIJob's pods: which of them are replaced, what they make of the job, which are left at its end."""

from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import pytest

from app.domain.plan import Rank
from app.domain.vocabulary import ReplicaPhase
from tests.domain.kinds.di_job.test_golden import KIND, accept
from tests.domain.kinds.di_job.test_native import FIRST, LEARNER, SECOND, Life
from tests.domain.kinds.di_job.test_validation import a_manifest, a_task

PENDING, RUNNING = ReplicaPhase.PENDING, ReplicaPhase.RUNNING


def a_life(**spec: Any) -> Life:
    """A learner and two collectors whose pods have been created."""
    tasks = (a_task(type="learner"), a_task(type="collector", replicas=2))
    life = Life(accept(a_manifest(*tasks, **({"backoffLimit": 0} | spec))))
    life.then("the first passes")
    return life


def bring(life: Life, key: Rank, state: ReplicaPhase | int) -> None:
    """The pod comes to this phase, or ends with this exit code."""
    pod = life.pod(key)
    while pod.phase not in (state, RUNNING):
        life.world.kubelet(pod)
    if isinstance(state, int):
        pod.end(state, life.world.now)


@pytest.mark.parametrize(
    ("learner", "first", "second", "limit", "phase"),
    [
        (PENDING, PENDING, PENDING, 0, "Starting"),
        (RUNNING, PENDING, PENDING, 0, "Starting"),
        (RUNNING, RUNNING, RUNNING, 0, "Running"),
        (0, RUNNING, RUNNING, 0, "Running"),
        (0, 0, RUNNING, 0, "Running"),
        (0, 0, 0, 0, "Succeeded"),
        (RUNNING, 1, RUNNING, 0, "Failed"),
        (PENDING, 1, RUNNING, 0, "Failed"),
        (0, 0, 1, 0, "Failed"),
        (RUNNING, 143, RUNNING, 0, "Failed"),
        (RUNNING, 1, RUNNING, 1, "Restarting"),
        (RUNNING, 1, 1, 1, "Restarting"),
        (RUNNING, 1, 1, None, "Restarting"),
    ],
)
def test_the_outcome_of_the_job_follows_from_its_pods(
    learner: ReplicaPhase | int, first: ReplicaPhase | int, second: ReplicaPhase | int, limit: int | None, phase: str
) -> None:
    life = a_life(backoffLimit=limit)
    if phase == "Restarting":
        life.run()
    for key, state in zip((LEARNER, FIRST, SECOND), (learner, first, second), strict=True):
        bring(life, key, state)
    shown = life.then("that")
    types = [condition["type"] for condition in shown["conditions"]]
    if phase == "Restarting":
        assert types[-2:] == ["Restarting", "Starting"], "within the minute all pods have been created again"
    else:
        assert (shown["phase"], types[-1]) == (phase, phase)
    assert shown["restarts"] == (1 if phase == "Restarting" else 0)


def test_a_job_is_restarting_until_all_pods_are_created_again_and_then_starting_until_they_run() -> None:
    life = a_life(backoffLimit=1)
    life.run()
    bring(life, FIRST, 1)
    phases = []
    for _ in range(8):
        life.world.reconcile()
        phases.append(life.status()["phase"])
        life.world.advance(5)
    phases.append(life.run()["phase"])
    assert list(dict.fromkeys(phases)) == ["Restarting", "Starting", "Running"]


def test_a_pod_that_fails_before_the_job_first_ran_restarts_it() -> None:
    life = a_life(backoffLimit=1)
    bring(life, LEARNER, PENDING)
    life.pod(FIRST).end(127, life.world.now, "StartError", "no paddle_k8s")
    phases = []
    for _ in range(8):
        life.world.reconcile()
        phases.append(life.status()["phase"])
        life.world.advance(5)
    phases.append(life.run()["phase"])
    assert list(dict.fromkeys(phases)) == ["Restarting", "Starting", "Running"]


@pytest.mark.parametrize("first_run", [True, False])
@pytest.mark.parametrize("lasts", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 2, 2], [5, 5, 6, 9]])
def test_pods_that_always_fail_one_after_another_use_up_the_limit_together(
    lasts: list[int], *, first_run: bool
) -> None:
    """Each pod runs `sleep <seconds>; exit 1`. Every one of them restarts as often as the job."""
    life = Life(accept(a_manifest(a_task(type="collector", replicas=4), backoffLimit=3)))
    life.world.reconcile()
    if first_run:
        life.kubelets(RUNNING)
    life.world.reconcile()
    began: dict[str, datetime] = {}
    shown = []
    for _ in range(300):
        for pod in [pod for pod in life.world.pods.values() if not (pod.deleting or pod.ended)]:
            bring(life, pod.key, RUNNING)
            since = began.setdefault(pod.uid, life.world.now)
            if life.world.now >= since + timedelta(seconds=lasts[pod.key.rank]):
                pod.end(1, life.world.now)
        for _ in range(3):
            life.world.reconcile()
        shown.append(life.status())
        if shown[-1]["phase"] == "Failed":
            break
        life.world.advance(1)
    assert shown[-1]["phase"] == "Failed"
    counted = [restarts for restarts, _ in groupby(step["restarts"] for step in shown)]
    assert counted in ([0, 1, 2, 3], [1, 2, 3]), "the first status can have the first restart"
    attempts = {key.rank: one.attempt.number for key, one in life.world.recorded.replicas.items()}
    assert attempts == dict.fromkeys(range(4), 4)


def test_a_failure_is_part_of_a_restart_only_until_all_pods_are_created_again() -> None:
    """As in upstream, where a job that is Starting again restarts once more, however many of its pods failed."""
    life = a_life(backoffLimit=2)
    life.run()
    bring(life, FIRST, 1)
    assert life.then("a collector has failed, and its next pod was created")["phase"] == "Starting"
    bring(life, LEARNER, 1)
    bring(life, SECOND, 1)
    assert life.then("the other two have failed")["restarts"] == 2


@pytest.mark.parametrize(
    ("policy", "left"), [("Running", {LEARNER, FIRST}), ("All", set()), ("None", {LEARNER, FIRST, SECOND})]
)
def test_which_pods_are_left_at_the_end(policy: str, left: set[Rank]) -> None:
    life = a_life(cleanPodPolicy=policy)
    life.run()
    bring(life, LEARNER, 0)
    bring(life, FIRST, 1)
    assert life.then("a collector has failed")["phase"] == "Failed"
    for pod in list(life.world.pods.values()):
        if pod.deleting:
            life.world.kubelet(pod)
    life.then("those that were stopped are gone")
    assert {pod.key for pod in life.world.pods.values()} == left


def test_a_restart_replaces_only_the_failed_pods() -> None:
    life = a_life(backoffLimit=1)
    life.run()
    before = {pod.key: pod.uid for pod in life.world.pods.values()}
    bring(life, FIRST, 1)
    life.then("a collector has failed")
    life.run()
    after = {pod.key: pod.uid for pod in life.world.pods.values()}
    assert {key for key in before if before[key] != after[key]} == {FIRST}


def test_a_pod_deleted_by_another_client_is_a_reschedule() -> None:
    life = a_life()
    life.run()
    life.world.foreign_delete(life.pod(SECOND))
    life.world.kubelet(life.pod(SECOND))
    shown = life.then("a collector was deleted")
    assert [condition["type"] for condition in shown["conditions"]][-2:] == ["Rescheduling", "Starting"]
    assert (shown["phase"], shown["restarts"], shown["reschedules"]) == ("Starting", 0, 1)
    assert life.run()["phase"] == "Running"


def test_scaling_down_one_of_two_untyped_tasks_changes_only_that_task() -> None:
    stored = accept(a_manifest(a_task("first", replicas=3), a_task("second", replicas=3)))
    life = Life(stored)
    life.then("the first passes")
    life.run()
    life.resize("first", 1)
    life.then("two fewer of the first task")
    leaving = {pod.key for pod in life.world.pods.values() if pod.deleting}
    assert leaving == {Rank("first", 1), Rank("first", 2)}
    assert life.status()["taskStatus"] == {"first": {"Running": 3}, "second": {"Running": 3}}, "also those that leave"
    assert KIND.scaling(KIND.read(life.manifest)).sizes == {"first": 1, "second": 3}
