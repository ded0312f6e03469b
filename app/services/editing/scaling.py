"""Computes the sizes that a request asks for. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.errors import Conflict, Problems, pointer_to
from app.domain.kinds.job_kind import Accepted, Scaling


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesWanted:
    """The requested sizes by task, or `replicas` of one `task`, which may be omitted if only one can be scaled."""

    replicas: int | None = None
    task: str | None = None
    tasks: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    task: str
    size: int
    pointer: str


def scaling_of(job: Accepted[Any]) -> Scaling:
    """Return the tasks of a job that may be resized.

    Raises:
        Conflict: no task may be resized.
    """
    scaling = job.kind.scaling(job)
    if scaling is None or all(least == most for least, most in scaling.bounds.values()):
        raise Conflict(
            f"this {job.kind.name} cannot be scaled: its kind has a fixed size, or its minimum equals its maximum",
            code="ScaleNotSupported",
        )
    return scaling


def choose_sizes(scaling: Scaling, wanted: SizesWanted) -> Mapping[str, int]:
    """Return the requested sizes by task.

    Raises:
        InvalidManifest: the request is ambiguous or exceeds the bounds of the job. The error lists all problems.
    """
    problems = Problems()
    if wanted.tasks is not None:
        asked = [_Asked(task, size, pointer_to("/tasks", task)) for task, size in wanted.tasks.items()]
        _require_one_form(wanted, problems)
    else:
        asked = _of_one_task(scaling, wanted, problems)
    return _check(scaling, asked, problems, "/replicas" if wanted.tasks is None else "/tasks")


def shift_sizes(scaling: Scaling, deltas: Mapping[str, int]) -> Mapping[str, int]:
    """Return the sizes by task after these changes.

    Raises:
        InvalidManifest: the sizes exceed the bounds of the job. The error lists all problems.
    """
    asked = [
        _Asked(task, scaling.sizes.get(task, 0) + delta, pointer_to("/tasks", task)) for task, delta in deltas.items()
    ]
    return _check(scaling, asked, Problems(), "/tasks")


def resize(stored: Accepted[Any], scaling: Scaling, sizes: Mapping[str, int]) -> Accepted[Any]:
    """Return the manifest with these sizes, or the same object if it has them already."""
    if all(scaling.sizes[task] == size for task, size in sizes.items()):
        return stored
    return stored.kind.resize(stored, sizes)


def _require_one_form(wanted: SizesWanted, problems: Problems) -> None:
    for field in ("replicas", "task"):
        if getattr(wanted, field) is not None:
            problems.add(f"/{field}", "NotTogether", f"{field} and tasks cannot be given together", "one of them")


def _of_one_task(scaling: Scaling, wanted: SizesWanted, problems: Problems) -> list[_Asked]:
    if wanted.replicas is None:
        problems.add("/replicas", "Required", "the request has no size", "replicas, or tasks with a size for each")
    task = wanted.task
    if task is None:
        able = [name for name, (least, most) in scaling.bounds.items() if least != most]
        if len(able) > 1:
            problems.add("/task", "Required", "more than one task of this job can be scaled", _one_of(able))
            return []
        task = able[0]
    if task not in scaling.sizes:
        problems.add("/task", "UnknownTask", "no task of this name can be scaled", _one_of(scaling.sizes))
        return []
    return [] if wanted.replicas is None else [_Asked(task, wanted.replicas, "/replicas")]


def _check(scaling: Scaling, asked: Sequence[_Asked], problems: Problems, whole: str) -> Mapping[str, int]:
    if not asked and not problems:
        problems.add(whole, "Required", "the request names no task", _one_of(scaling.sizes))
    for wanted in asked:
        if wanted.task not in scaling.sizes:
            problems.add(wanted.pointer, "UnknownTask", "no task of this name can be scaled", _one_of(scaling.sizes))
            continue
        least, most = scaling.bounds[wanted.task]
        # The present size is always accepted: a repeated request changes nothing, even if the bounds have changed.
        if not least <= wanted.size <= most and wanted.size != scaling.sizes[wanted.task]:
            detail = f"{wanted.task} would have {wanted.size} replicas"
            problems.add(wanted.pointer, "OutOfRange", detail, f"{least} to {most}")
    sizes = {wanted.task: wanted.size for wanted in asked}
    _check_sum(scaling, sizes, problems, whole)
    problems.raise_if_any("the job cannot have this size")
    return sizes


def _check_sum(scaling: Scaling, sizes: Mapping[str, int], problems: Problems, pointer: str) -> None:
    # The sum of wrong sizes would only add a misleading error.
    if problems:
        return
    least, most = scaling.total
    total = sum({**scaling.sizes, **sizes}.values())
    if not least <= total <= most and total != sum(scaling.sizes.values()):
        detail = f"the tasks together would have {total} replicas"
        problems.add(pointer, "OutOfRange", detail, f"{least} to {most} together")


def _one_of(tasks: Sequence[str] | Mapping[str, int]) -> str:
    return "one of " + ", ".join(tasks)
