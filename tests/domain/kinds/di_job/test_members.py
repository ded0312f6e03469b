"""Sizes and global ranks over a DIJob's life, and what its own pods are told of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidManifest
from app.domain.kinds.di_job.members import addresses, layout, ranks, sizes, task_to_resize
from app.domain.plan import Manifest, Rank
from app.domain.status.records import Replica
from app.domain.vocabulary import Outcome
from tests.domain.kinds.di_job.test_golden import KIND, accept, load, plan_of
from tests.domain.kinds.di_job.test_validation import TEMPLATE, a_manifest, a_task
from tests.support.plans import an_attempt

TASKS = st.sampled_from(["learner", "collector", "evaluator", "league"])
SIZES = st.dictionaries(TASKS, st.integers(1, 6), min_size=1)
CHANGES = st.lists(st.tuples(TASKS, st.integers(1, 6)), max_size=8)


@given(SIZES)
def test_a_fresh_job_is_numbered_in_the_order_of_its_tasks(wanted: dict[str, int]) -> None:
    found = layout(wanted, {})
    assert [rank for of_task in found.values() for rank in of_task] == list(range(sum(wanted.values())))


@given(SIZES, CHANGES)
def test_remaining_replicas_keep_their_distinct_global_ranks(
    wanted: dict[str, int], changes: list[tuple[str, int]]
) -> None:
    found = layout(wanted, {})
    for task, size in changes:
        if task not in wanted:
            continue
        before, wanted = found, {**wanted, task: size}
        found = layout(wanted, before)
        assert {name: len(of_task) for name, of_task in found.items()} == wanted
        for name, of_task in found.items():
            stays = min(len(of_task), len(before[name]))
            assert of_task[:stays] == before[name][:stays]
        taken = [rank for of_task in found.values() for rank in of_task]
        assert len(set(taken)) == len(taken)


@given(SIZES, CHANGES)
def test_new_replicas_get_the_lowest_free_global_ranks(wanted: dict[str, int], changes: list[tuple[str, int]]) -> None:
    found = layout(wanted, {})
    for task, size in changes:
        if task not in wanted:
            continue
        before, wanted = found, {**wanted, task: size}
        found = layout(wanted, before)
        kept = {rank for name, of_task in before.items() for rank in of_task[: len(found[name])]}
        joined = found[task][len(before[task]) :]
        assert joined == sorted(joined)
        assert all(lower in kept | set(joined) for rank in joined for lower in range(rank))


def test_a_global_rank_stays_free_until_a_new_replica_gets_it() -> None:
    stored = accept(load("seed"))
    assert stored["assigned"]["ranks"] == {"learner": [0], "evaluator": [1], "collector": [2, 3]}
    shrunk = KIND.resize(KIND.resize(KIND.read(stored), {"learner": 2}), {"collector": 1}).manifest
    assert shrunk["assigned"]["ranks"] == {"learner": [0, 4], "evaluator": [1], "collector": [2]}
    grown = KIND.resize(KIND.read(shrunk), {"evaluator": 2}).manifest
    assert grown["assigned"]["ranks"] == {"learner": [0, 4], "evaluator": [1, 3], "collector": [2]}


@given(st.lists(st.tuples(st.sampled_from(["learner", "evaluator", "collector"]), st.integers(1, 3)), max_size=5))
def test_an_edit_of_the_manifest_and_a_request_for_a_size_come_to_the_same(changes: list[tuple[str, int]]) -> None:
    stored = accept(load("normal"))
    for task, size in changes:
        resized = KIND.resize(KIND.read(stored), {task: size}).manifest
        posted = load("normal")
        for item in posted["spec"]["tasks"]:
            item["replicas"] = sizes(resized)[item["name"]]
        assert accept(posted, stored) == resized
        assert KIND.changes(stored, resized) == []
        stored = resized


@given(SIZES)
def test_the_plan_has_the_ranks_that_were_assigned(wanted: dict[str, int]) -> None:
    stored = accept(a_manifest(*(a_task(name, replicas=size) for name, size in wanted.items())))
    found = {key: replica.global_rank for key, replica in plan_of(stored).replicas.items()}
    assert found == {Rank(task, i): rank for task, of_task in ranks(stored).items() for i, rank in enumerate(of_task)}


@pytest.mark.parametrize(
    ("manifest", "bounds", "total"),
    [
        (load("seed"), {"learner": (1, 3), "evaluator": (1, 3), "collector": (1, 3)}, (3, 5)),
        (load("everything"), {"learner": (1, 4), "big-league": (1, 4), "judge": (1, 4)}, (3, 6)),
        (a_manifest(a_task("a"), minReplicas=0, maxReplicas=7), {"a": (1, 7)}, (1, 7)),
        (
            a_manifest(a_task("a", replicas=3), a_task("b"), minReplicas=4, maxReplicas=4),
            {"a": (1, 3), "b": (1, 3)},
            (4, 4),
        ),
        (a_manifest(a_task("a" * 57)), {"a" * 57: (1, 10)}, None),
        (a_manifest(a_task("a" * 57), maxReplicas=10), {"a" * 57: (1, 10)}, (1, 10)),
    ],
)
def test_bounds(manifest: Manifest, bounds: Mapping[str, tuple[int, int]], total: tuple[int, int] | None) -> None:
    scaling = KIND.scaling(KIND.read(accept(manifest)))
    assert scaling.sizes == {task["name"] or task["type"]: task.get("replicas", 1) for task in _named(manifest)}
    assert scaling.bounds == bounds
    assert total is None or scaling.total == total
    assert scaling.autoscaled is None


def _named(manifest: Manifest) -> list[dict[str, Any]]:
    return [{"name": task.get("name"), **task} for task in manifest["spec"]["tasks"]]


def test_without_bounds_a_job_may_grow_as_far_as_its_lists_reach() -> None:
    scaling = KIND.scaling(KIND.read(accept(load("normal"))))
    assert scaling.total[0] == 3
    assert 500 < scaling.total[1] < 2000


def at(task: str, rank: int, ip: str | None = "10.0.0.1", *, leaving: bool = False, **more: Any) -> Replica:
    key = Rank(task, rank)
    return Replica(key=key, attempt=an_attempt(key=key, pod_ip=ip, **more), leaving=leaving)


def test_addresses_stand_at_the_global_ranks() -> None:
    stored = KIND.resize(KIND.read(accept(load("everything"))), {"learner": 2}).manifest
    stored = KIND.resize(KIND.read(stored), {"big-league": 1}).manifest
    assert stored["assigned"]["ranks"] == {"learner": [0, 4], "big-league": [1], "judge": [3]}
    replicas = [
        at("learner", 0, "10.0.0.9"),
        at("learner", 1, "fd00::4"),
        at("big-league", 0, "10.0.0.7"),
        at("big-league", 1, "10.0.0.8", leaving=True),
        at("judge", 0, None),
        at("judge", 1, "10.0.0.5"),
    ]
    assert addresses(stored, replicas) == ["10.0.0.9:50515", "10.0.0.7:22270", "", "", "[fd00::4]:50515"]
    assert addresses(stored, []) == [""] * 5


def test_an_ended_replica_has_no_address() -> None:
    stored = accept(load("serial"))
    assert addresses(stored, [at("serial", 0, outcome=Outcome.SUCCEEDED)]) == [""]
    assert addresses(stored, [at("serial", 0)]) == ["10.0.0.1:22270"]


def test_a_leaving_replica_has_no_address() -> None:
    assert addresses(accept(load("serial")), [at("serial", 0, leaving=True)]) == [""]


@pytest.mark.parametrize(
    ("ports", "port"),
    [
        ([], 22270),
        ([{"containerPort": 1}], 22270),
        ([{"name": "di-port", "containerPort": 50515}], 50515),
        ([{"name": "other", "containerPort": 1}, {"name": "di-port", "containerPort": 2}], 2),
    ],
)
@pytest.mark.parametrize("container", ["di-container", "main"])
def test_the_port_is_that_of_its_own_container(ports: list[dict[str, Any]], port: int, container: str) -> None:
    template = {"spec": {"containers": [{"name": container, "image": "x", "ports": ports}]}}
    stored = accept(a_manifest(a_task("a", template=template)))
    expected = port if container == "di-container" else 22270
    assert addresses(stored, [at("a", 0)]) == [f"10.0.0.1:{expected}"]


@pytest.mark.parametrize(
    ("tasks", "asked", "resized"),
    [
        ([a_task("a"), a_task("many", type="collector")], None, "many"),
        ([a_task("a"), a_task("many", type="collector")], "a", "a"),
        ([a_task("a")], None, "a"),
        ([a_task("collector"), a_task("b", template=TEMPLATE)], "b", "b"),
    ],
)
def test_the_task_that_a_request_resizes(tasks: list[dict[str, Any]], asked: str | None, resized: str) -> None:
    assert task_to_resize(accept(a_manifest(*tasks)), asked) == resized


@pytest.mark.parametrize(("asked", "code"), [("c", "UnknownTask"), (None, "Required"), ("", "UnknownTask")])
def test_an_ambiguous_request_to_resize_is_refused(asked: str | None, code: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        task_to_resize(accept(a_manifest(a_task("collector"), a_task("b"))), asked)
    (error,) = refused.value.errors
    assert (error.pointer, error.code, error.accepted) == ("/task", code, "one of collector, b")
