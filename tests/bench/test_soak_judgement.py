"""The decisions of `python -m bench soak`, on made-up figures."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.models.base import metadata
from bench.soak.attempts import StoredRow, differences, without_pod
from bench.soak.judgement import (
    ALLOWANCES,
    Inventory,
    courses,
    growth_of_descriptors,
    growth_of_memory,
    losses,
)
from bench.soak.load import Answers, LoadFigures
from bench.soak.processes import WORKER, Sample
from bench.soak.tables import EXPLANATIONS, TableSize, unexplained
from tests.crash.pods import Attempt

NONE = Answers(done=0, retries=0, broken=0, refused=0, p50=0, p99=0, codes={})
LOAD = LoadFigures(
    submit=NONE,
    poll=replace(NONE, done=5),
    delete=NONE,
    submitted=10,
    unanswered=0,
    seconds=300,
    cpu=1,
    error="no answer",
)
FOUND = Inventory(
    jobs=10,
    names=10,
    remaining=0,
    faults=(),
    pods=1,
    doubles=0,
    without_pod=0,
    differences=(),
    objects=0,
    phases={"Cancelled": 10},
)


@pytest.mark.parametrize(
    ("load", "found", "said"),
    [
        ({}, {}, []),
        ({}, {"jobs": 9, "names": 9}, ["10 jobs were accepted, and 9 exist"]),
        ({}, {"jobs": 11}, ["1 jobs exist twice"]),
        ({}, {"jobs": 11, "names": 11}, ["10 jobs were accepted, and 11 exist"]),
        ({}, {"doubles": 2}, ["2 attempts had more than one pod"]),
        ({}, {"differences": ["a sentence"]}, ["a sentence"]),
        ({}, {"remaining": 1}, ["1 deleted jobs are not gone"]),
        ({}, {"objects": 3}, ["3 objects of deleted jobs are left in the cluster"]),
        ({}, {"faults": ("feed-numbers: 1 fault",)}, ["feed-numbers: 1 fault"]),
        ({"unanswered": 1}, {}, ["1 requests were never answered: no answer"]),
        (
            {
                "poll": replace(
                    NONE, done=5, codes={"200": 5, "403": 1, "404": 2, "408": 3, "409": 3, "429": 3, "503": 3}
                )
            },
            {},
            ["1 polls of accepted jobs were answered 403", "2 polls of accepted jobs were answered 404"],
        ),
        ({"poll": replace(NONE, codes={"503": 7})}, {}, ["no poll was answered"]),
    ],
)
def test_losses_and_doubles_are_named(load: dict[str, Any], found: dict[str, Any], said: Sequence[str]) -> None:
    assert losses(replace(LOAD, **load), replace(FOUND, **found)) == said


def life(
    pid: int, begin: int, end: int, memory: Callable[[int], float], descriptors: Callable[[int], int]
) -> list[Sample]:
    return [
        Sample(at=at, role=WORKER, pid=pid, memory=memory(at - begin), descriptors=descriptors(at - begin))
        for at in range(begin, end, 2)
    ]


def steady(_: int) -> int:
    return 50


def test_a_process_that_fills_its_caches_and_is_restarted_does_not_grow() -> None:
    lives = [
        life(pid, begin, begin + 100, lambda age: min(50 + 4 * age, 120), lambda age: 20 + min(age, 20))
        for pid, begin in enumerate((0, 100, 200))
    ]
    [course] = courses([sample for one in lives for sample in one], 300)
    assert course.lives == 3
    assert (course.descriptors.start, course.descriptors.middle, course.descriptors.end) == (40, 40, 40)
    assert growth_of_descriptors([course]) == growth_of_memory([course]) == []


def test_a_leak_is_found_although_each_process_is_killed() -> None:
    lives = [
        life(pid, begin, begin + 100, lambda age: 50 + 4 * age, lambda age: 20 + age)
        for pid, begin in enumerate((0, 100, 200))
    ]
    [course] = courses([sample for one in lives for sample in one], 300)
    assert [word.partition(" has ")[0] for word in growth_of_memory([course])] == ["the worker"]
    assert "in the life of a process" in growth_of_memory([course])[0]
    assert course.descriptors.growth > ALLOWANCES[WORKER].descriptors
    assert len(growth_of_descriptors([course])) == 1


def test_growth_from_one_process_to_the_next_is_found() -> None:
    lives = [
        life(pid, begin, begin + 50, steady, dict.fromkeys(range(50), 30 * pid).__getitem__)
        for pid, begin in enumerate(range(0, 300, 50))
    ]
    [course] = courses([sample for one in lives for sample in one], 300)
    assert growth_of_memory([course]) == []
    assert growth_of_descriptors([course]) == ["the worker has 135 descriptors after 75 in the middle of the run"]


def test_a_process_that_is_not_warm_is_not_judged() -> None:
    [course] = courses(life(1, 0, 18, lambda age: 10.0 * age, lambda age: 100 * age), 18)
    assert (course.memory.start, course.memory.middle, course.memory.end) == (None, None, None)
    assert growth_of_descriptors([course]) == growth_of_memory([course]) == []


def test_every_table_is_explained() -> None:
    assert set(EXPLANATIONS) == set(metadata.tables)


def test_a_table_with_more_rows_than_its_explanation_is_named() -> None:
    size = TableSize(rows=11, bytes=8192)
    assert unexplained({"jobs": size, "attempts": size}, jobs=11, pods=9, without_pod=2, live=0) == []
    assert unexplained({"jobs": size, "new": size}, jobs=10, pods=0, without_pod=0, live=0) == [
        "the table jobs has 11 rows; 10 are explained",
        "the table new has 11 rows; 0 are explained",
    ]
    assert unexplained({"attempts": size, "attempt_logs": size}, jobs=11, pods=10, without_pod=1, live=0) == [
        "the table attempt_logs has 11 rows; 10 are explained"
    ]


ATTEMPT = Attempt("uid", "worker", 0, 1)
ROW = StoredRow(table="attempts", namespace="ns", job="job", attempt=ATTEMPT, pod_uid="pod")
NO_POD_ROW = replace(ROW, pod_uid=None, had_none=True)
UNEXPLAINED = "has rows that no pod explains: ns/job/worker[0]/1"
UNRECORDED = "attempts that had a pod are not recorded: uid/worker[0]/1"


@pytest.mark.parametrize(
    ("rows", "pods", "without", "said"),
    [
        ([ROW, replace(ROW, table="attempt_logs"), replace(ROW, table="attempt_events")], {"pod"}, 0, []),
        ([ROW], {"pod", "other"}, 0, []),
        ([NO_POD_ROW], set(), 1, []),
        ([ROW], set(), 0, [f"the table attempts {UNEXPLAINED}"]),
        ([ROW], {"other"}, 0, [f"the table attempts {UNEXPLAINED}"]),
        ([replace(ROW, pod_uid=None)], set(), 0, [f"the table attempts {UNEXPLAINED}"]),
        ([NO_POD_ROW], {"pod"}, 0, [f"the table attempts {UNEXPLAINED}"]),
        ([NO_POD_ROW, replace(NO_POD_ROW, table="attempt_logs")], set(), 1, [f"the table attempt_logs {UNEXPLAINED}"]),
        ([], {"pod"}, 0, [UNRECORDED]),
        (
            [replace(ROW, table="attempt_logs")],
            {"pod"},
            0,
            [UNRECORDED],
        ),
    ],
)
def test_attempts_and_pods_that_do_not_explain_each_other_are_named(
    rows: Sequence[StoredRow], pods: set[str], without: int, said: Sequence[str]
) -> None:
    seen = {ATTEMPT: pods} if pods else {}
    assert (without_pod(rows, seen), differences(rows, seen)) == (without, said)


def test_many_unexplained_attempts_are_named_in_part() -> None:
    rows = [replace(ROW, attempt=ATTEMPT._replace(rank=rank)) for rank in range(25)]
    [sentence] = differences(rows, {})
    assert sentence.endswith("ns/job/worker[19]/1 and 5 more")
