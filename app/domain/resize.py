"""The resize of a job by an edit: what it stores beside its manifest: scale records, names and the number of pods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.kinds.job_kind import Accepted
from app.domain.manifests.rendered import names_added
from app.domain.planning import Planner
from app.domain.reservations.name_ranges import NameRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleChange:
    """A change of the size of a task, as part of an edit."""

    task: str
    from_replicas: int
    to_replicas: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """The tasks that an edit resizes, the names that the job may use in addition, and the number of added pods."""

    scales: Sequence[ScaleChange]
    names: Sequence[NameRange]
    pods: int


def plan_resize(planner: Planner, uid: str, before: Accepted[Any], after: Accepted[Any], reason: str) -> Resize:
    """Return the changes of sizes and names from one manifest of a job to the next. `reason` is for the scale records.

    Raises:
        InvalidManifest: the objects of the next manifest are too large, or its queue is not valid.
    """
    # Only the next manifest is checked. The stored one was accepted under the limits of its time.
    stored = planner.plan(before, uid)
    plans = stored, planner.checked_plan(after, uid, stored)
    sizes = [{task.name: task.size for task in plan.tasks} for plan in plans]
    # No edit adds or removes a task.
    scales = [
        ScaleChange(task=task, from_replicas=sizes[0][task], to_replicas=size, reason=reason)
        for task, size in sizes[1].items()
        if sizes[0][task] != size
    ]
    pods = sum(sizes[1].values()) - sum(sizes[0].values())
    return Resize(scales=scales, names=names_added(*plans), pods=pods)
