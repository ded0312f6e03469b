"""Selects the jobs of a dry run, and those among them that it must not resize."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from app.domain.kinds.job_kind import Accepted, JobKind
from app.domain.kubernetes import labels
from app.domain.plan import JobPlan, Manifest
from app.domain.scaling.requests import demand_of, request_of
from app.domain.scaling.values import Excuse, ResourceAmount, ScalableJob, Verdict, WaitingJob
from app.domain.vocabulary import JobPhase

# What the scheduler says of a node without room (NodeResourcesFit), as a regular expression of PostgreSQL. A pod that
# waits for a volume, or that no node's labels match, is unschedulable too, but starts no sooner if other jobs shrink.
NO_ROOM: Final = "Insufficient |Too many pods"
_SETTLING = (JobPhase.CREATING, JobPhase.SCALING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The elastic task of a job as its manifest describes it. It changes only with an edit."""

    task: str
    size: int
    least: int
    most: int
    need: ResourceAmount
    selector: Mapping[str, str]
    opted_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The present state of a job.

    `seen` says that the controller has observed the present generation. `scaled_at` is the time of the last scale
    request.
    """

    uid: str
    namespace: str
    name: str
    phase: JobPhase
    seen: bool
    scaled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWaits:
    """A task of a job with replicas for which no node has room. `wholly`: no replica of the task has a node."""

    job: WaitingJob
    task: str
    wholly: bool


def can_scale(kind: JobKind[Any]) -> bool:
    """Return whether jobs of this kind can be resized."""
    return type(kind).scaling is not JobKind.scaling


def shape_of(accepted: Accepted[Any], plan: Callable[[Accepted[Any]], JobPlan]) -> Shape | None:
    """Return the task of a job that the autoscaler may resize; None if there is none.

    `plan` makes the plan of a manifest.
    """
    scaling = accepted.kind.scaling(accepted)
    if scaling is None or scaling.autoscaled is None:
        return None
    task = scaling.autoscaled
    size, (least, most) = scaling.sizes[task], scaling.bounds[task]
    others = sum(scaling.sizes.values()) - size
    # Some kinds, such as DIJob, bound all tasks together. The other tasks keep their sizes in a dry run.
    least, most = max(least, scaling.total[0] - others), min(most, scaling.total[1] - others)
    # A plan renders no pod for a task without replicas, so such a task is planned with its least number of replicas.
    with_replicas = accepted if size else accepted.kind.resize(accepted, {task: max(1, least)})
    demand = demand_of(_template(plan(with_replicas), task).get("spec") or {})
    annotations = accepted.manifest["metadata"].get("annotations", {})
    return Shape(
        task=task,
        size=size,
        least=least,
        most=most,
        need=request_of(demand),
        selector=demand.node_selector or {},
        opted_out=annotations.get(labels.AUTOSCALE) == "false",
    )


def _template(plan: JobPlan, task: str) -> Manifest:
    found = next(found for found in plan.tasks if found.name == task)
    return found.render(0).template if found.size else {}


def candidate(shape: Shape, live: Live, now: datetime, freeze: timedelta) -> ScalableJob:
    return ScalableJob(
        uid=live.uid,
        namespace=live.namespace,
        name=live.name,
        task=shape.task,
        size=shape.size,
        least=shape.least,
        most=shape.most,
        need=shape.need,
        phase=live.phase,
        settling=not live.seen or live.phase in _SETTLING,
        selector=shape.selector,
        excuse=_excuse(shape, live, now, freeze),
    )


def _excuse(shape: Shape, live: Live, now: datetime, freeze: timedelta) -> Excuse | None:
    if shape.opted_out:
        return Excuse(verdict=Verdict.OPTED_OUT, message=f"the annotation {labels.AUTOSCALE} is false")
    if live.phase is JobPhase.PAUSED:
        return Excuse(verdict=Verdict.PAUSED, message="the job is paused")
    if live.scaled_at is not None and now < (until := live.scaled_at + freeze):
        moment = until.isoformat(timespec="seconds").replace("+00:00", "Z")
        return Excuse(verdict=Verdict.FROZEN, message=f"frozen until {moment}, after its last change of size")
    return None


def waiting(tasks: Iterable[TaskWaits], elastic: Mapping[str, str]) -> list[WaitingJob]:
    """Return the jobs that cannot start because all replicas of a task that they need find no room.

    `elastic` maps the uid of a job to its elastic task. A job needs its other tasks; if it has none, it needs that one.
    """
    by_job: dict[WaitingJob, list[TaskWaits]] = {}
    for task in tasks:
        by_job.setdefault(task.job, []).append(task)
    return [
        job
        for job, found in by_job.items()
        if any(item.wholly for item in _required_tasks(found, elastic.get(job.uid)))
    ]


def _required_tasks(tasks: list[TaskWaits], elastic: str | None) -> list[TaskWaits]:
    return [item for item in tasks if item.task != elastic] or tasks
