"""Which priority a job requests of its queue, and what it stands for in a cluster."""

from typing import Any

import pytest

from app.domain.plan import JobPlan, Manifest, PriorityClassKind, PriorityClassRef
from app.domain.queueing.priorities import Priority, default_priority, has_other_priority, requested_priority
from tests.support.plans import a_plan, with_templates


def a_workload_class(name: str) -> PriorityClassRef:
    return PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name=name)


def a_pod_class(name: str) -> PriorityClassRef:
    return PriorityClassRef(kind=PriorityClassKind.POD, name=name)


def with_classes(**more: Any) -> JobPlan:
    """The plan of a job whose tasks have several classes, one of them a task without replicas."""
    classes = {"none": "unused", "a": "", "b": "low", "c": "high"}
    plan = a_plan({"none": 0, "a": 1, "b": 1, "c": 1}, **more)
    return with_templates(plan, {name: {"priorityClassName": value} for name, value in classes.items()})


LABELLED = {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "urgent"}}}
PLAIN: Manifest = {"metadata": {}}


@pytest.mark.parametrize(
    ("manifest", "plan", "wanted"),
    [
        (LABELLED, with_classes(priority=7), a_workload_class("urgent")),
        (PLAIN, with_classes(priority=7), 7),
        (PLAIN, with_classes(), a_pod_class("low")),
        (PLAIN, a_plan(), None),
    ],
)
def test_the_first_priority_that_a_job_has_counts(
    manifest: Manifest, plan: JobPlan, wanted: PriorityClassRef | int | None
) -> None:
    assert requested_priority(manifest, plan) == wanted


@pytest.mark.parametrize(
    ("requested", "current", "differs"),
    [
        (a_workload_class("a"), a_workload_class("a"), False),
        (a_workload_class("a"), a_workload_class("b"), True),
        (a_workload_class("a"), a_pod_class("a"), True),
        (a_workload_class("a"), None, True),
        (a_pod_class("a"), a_workload_class("b"), True),
        (a_pod_class("a"), a_pod_class("a"), False),
        (7, a_workload_class("a"), True),
        (7, None, False),
        (None, a_workload_class("a"), True),
        (None, a_pod_class("the default of the cluster"), False),
        (None, None, False),
    ],
)
def test_an_edit_changes_the_class(
    requested: PriorityClassRef | int | None, current: PriorityClassRef | None, *, differs: bool
) -> None:
    assert has_other_priority(requested, current) is differs


def a_class(name: str, value: int, **more: Any) -> Manifest:
    return {"metadata": {"name": name}, "value": value, **more}


@pytest.mark.parametrize(
    ("classes", "wanted"),
    [
        ([], Priority()),
        ([a_class("high", 9)], Priority()),
        (
            [a_class("c", 5, globalDefault=True), a_class("b", 3, globalDefault=True), a_class("a", 1)],
            Priority(value=3, of=a_pod_class("b")),
        ),
    ],
)
def test_a_cluster_can_have_a_default(classes: list[Manifest], wanted: Priority) -> None:
    assert default_priority(classes) == wanted
