"""What an edit of the size of a job stores beside its manifest."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.errors import InvalidManifest
from app.domain.kinds.job_kind import Accepted
from app.domain.planning import Planner
from app.domain.queueing.requests import QUEUE_NAME
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.resize import ScaleChange, plan_resize
from tests.domain.kinds.di_job.test_validation import a_manifest, a_task

SIZES = {"a": 1, "b": 2}
PLANNER = Planner(installation="i")


def a_job(**spec: Any) -> Accepted[Any]:
    tasks = [a_task(task, replicas=size) for task, size in SIZES.items()]
    return PLANNER.draft(a_manifest(*tasks, **spec), "team-a", str).accepted


@pytest.mark.parametrize(
    ("resized", "pods"), [({}, 0), ({"b": 3}, 1), ({"a": 3, "b": 3}, 3), ({"b": 1}, -1), ({"a": 2, "b": 1}, 0)]
)
def test_an_edit_records_each_task_whose_size_changes_and_the_added_pods(resized: Mapping[str, int], pods: int) -> None:
    stored = a_job()
    planned = plan_resize(PLANNER, "u", stored, stored.kind.resize(stored, resized), "why")
    assert planned.scales == [
        ScaleChange(task=task, from_replicas=SIZES[task], to_replicas=size, reason="why")
        for task, size in resized.items()
    ]
    assert planned.pods == pods


def test_an_edit_may_not_remove_a_required_queue_that_the_job_has() -> None:
    planner = Planner(installation="i", requires_queue=True)
    queued, free = a_job(), a_job()
    queued.manifest["metadata"]["labels"] = {QUEUE_NAME: "team"}
    assert plan_resize(planner, "u", free, free, "why").pods == 0
    with pytest.raises(InvalidManifest, match="names no queue"):
        plan_resize(planner, "u", queued, free, "why")


def test_an_edit_that_raises_the_bounds_reserves_further_names() -> None:
    planned = plan_resize(PLANNER, "u", a_job(maxReplicas=4), a_job(maxReplicas=6), "why")
    assert planned.names == [NameRange(NameKind.POD, "job-a-3", 2), NameRange(NameKind.POD, "job-b-3", 2)]
    assert (planned.scales, planned.pods) == ([], 0)
