"""Requested sizes are within the bounds of the job, or refused with all errors."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidManifest
from app.domain.kinds.job_kind import Scaling
from app.domain.plan import Manifest
from app.domain.planning import Planner
from app.domain.resize import plan_resize
from app.services.editing.scaling import SizesWanted, choose_sizes, shift_sizes

numbers = st.integers(-3, 12)


@st.composite
def scalings(draw: st.DrawFn) -> Scaling:
    tasks = draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    bounds = {task: tuple(sorted((draw(st.integers(0, 6)), draw(st.integers(0, 6))))) for task in tasks}
    sizes = {task: draw(st.integers(least, most)) for task, (least, most) in bounds.items()}
    total = sum(sizes.values())
    return Scaling(
        sizes=sizes,
        bounds={task: (least, most) for task, (least, most) in bounds.items()},
        total=(draw(st.integers(0, total)), draw(st.integers(total, 24))),
    )


def allowed(scaling: Scaling, sizes: Mapping[str, int]) -> bool:
    if not sizes or not sizes.keys() <= scaling.sizes.keys():
        return False
    each = all(scaling.bounds[task][0] <= size <= scaling.bounds[task][1] for task, size in sizes.items())
    return each and scaling.total[0] <= sum({**scaling.sizes, **sizes}.values()) <= scaling.total[1]


@given(scalings(), st.dictionaries(st.sampled_from("abcde"), numbers))
def test_requested_sizes_are_returned_if_they_are_allowed(scaling: Scaling, tasks: dict[str, int]) -> None:
    if allowed(scaling, tasks):
        assert choose_sizes(scaling, SizesWanted(tasks=tasks)) == tasks
        return
    with pytest.raises(InvalidManifest) as refused:
        choose_sizes(scaling, SizesWanted(tasks=tasks))
    assert all(error.pointer.startswith("/tasks") and error.accepted for error in refused.value.errors)


@given(scalings(), st.sampled_from("abcde"), numbers)
def test_a_delta_is_added_to_the_current_size(scaling: Scaling, task: str, delta: int) -> None:
    sizes = {task: scaling.sizes.get(task, 0) + delta}
    if allowed(scaling, sizes):
        assert shift_sizes(scaling, {task: delta}) == sizes
    else:
        with pytest.raises(InvalidManifest) as refused:
            shift_sizes(scaling, {task: delta})
        assert refused.value.errors[0].pointer in (f"/tasks/{task}", "/tasks")


def test_the_task_may_be_omitted_if_only_one_can_be_scaled() -> None:
    scaling = Scaling(sizes={"master": 1, "trainer": 2}, bounds={"master": (1, 1), "trainer": (2, 6)}, total=(3, 7))
    assert choose_sizes(scaling, SizesWanted(replicas=4)) == {"trainer": 4}
    assert choose_sizes(scaling, SizesWanted(replicas=1, task="master")) == {"master": 1}


@pytest.mark.parametrize(("before", "after"), [((2, 2), (3, 3)), ((2, 4), (4, 4)), ((3, 3), (1, 2))])
def test_an_edit_of_both_bounds_is_recorded_as_a_resize(before: tuple[int, int], after: tuple[int, int]) -> None:
    planner = Planner(installation="i")
    was = planner.draft(training_job(*before), "ns", lambda: "x7k2m").accepted
    now = planner.draft(training_job(*after), "ns", lambda: "x7k2m", stored=was.manifest).accepted
    (change,) = plan_resize(planner, "u", was, now, "because").scales
    assert (change.task, change.from_replicas, change.reason) == ("trainer", before[0], "because")
    assert change.to_replicas == max(after[0], min(after[1], before[0]))


def training_job(least: int, most: int) -> Manifest:
    trainer = {"min-instance": least, "max-instance": most}
    spec = {"fault_tolerant": True, "local_job": True, "trainer": trainer}
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "job"},
        "spec": spec,
    }
