"""Validates the spec of a DIJob. The messages about types and names of tasks are those of upstream."""

from collections import Counter
from dataclasses import replace
from typing import Any, Final

from app.domain.errors import FieldError, Problems, pointer_to, shorten
from app.domain.kinds.di_job.bounds import least_total, longest_name, most_listed, pod_bytes
from app.domain.kinds.di_job.environment import service_name
from app.domain.kinds.di_job.spec import NO_TYPE, DIJobSpec, TaskSpec
from app.domain.kinds.job_kind import Limits
from app.domain.kubernetes import names
from app.domain.plan import Manifest
from app.domain.pod_template import validate_pod_template
from app.domain.policy.template import DeclaredTemplate

# Far beyond any job. The bound keeps the time of the checks short.
_MAX_TASKS: Final = 256
TASKS: Final = "/spec/tasks"
VOLUMES: Final = "/spec/volumes"


# Fields of a spec of DI-orchestrator 1.0 or earlier, which have no place beside tasks.
_FIRST_FORM: Final = ("template", "coordinator", "collector", "learner")


def refuse_first_form(spec: Any, problems: Problems) -> None:
    """Refuse the form of DI-orchestrator 1.0, which has one template and no tasks, and which manuals still show.

    Raises:
        InvalidManifest: the spec has this form. The error names no other field, because all of them would be wrong.
    """
    if not isinstance(spec, dict) or "tasks" in spec:
        return
    found = next((name for name in _FIRST_FORM if name in spec), None)
    if found is not None:
        detail = f"spec.{found} is the form of DI-orchestrator 1.0; since 1.1 the replicas are in spec.tasks"
        problems.add(TASKS, "Required", detail, "a list of tasks, each with type or name, replicas and template")
        problems.raise_if_any("the DIJob has the form of an earlier version")


def add_names(spec: DIJobSpec) -> DIJobSpec:
    """Return the spec with a name for each typed task that has none: its type."""
    return spec.model_copy(update={"tasks": [_add_name(task) for task in spec.tasks]})


def validate(spec: DIJobSpec, job: str, limits: Limits, problems: Problems) -> None:
    """Report every error of a spec whose tasks have names.

    `job` is the name of the job. It is empty if the name is not valid; names that contain it are then not checked.
    """
    if len(spec.tasks) > _MAX_TASKS:
        problems.add(TASKS, "TooMany", f"the list has {len(spec.tasks)} entries", f"{_MAX_TASKS} or fewer")
        return
    if job and (wrong := names.dns_1035_label(service_name(job))):
        detail = f'the Service "{shorten(service_name(job))}" of the job: {wrong}'
        problems.add("/metadata/name", "InvalidName", detail, "a shorter name of letters, digits and -")
        # Without the name, the checks of pod names do not report the same error again.
        job = ""
    before = len(problems)
    _check_tasks(spec, job, problems)
    well_named = len(problems) == before
    before = len(problems)
    _check_templates(spec, limits, problems)
    _check_bounds(spec, problems)
    # The room depends on the lengths of names and the sizes of templates, so errors in these would be reported twice.
    if well_named and len(problems) == before:
        _check_room(spec, job, limits, problems)


def _add_name(task: TaskSpec) -> TaskSpec:
    return task.model_copy(update={"name": task.type}) if not task.name and task.type != NO_TYPE else task


def _check_tasks(spec: DIJobSpec, job: str, problems: Problems) -> None:
    types: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for index, task in enumerate(spec.tasks):
        at = pointer_to(TASKS, index)
        types[task.type] += 1
        known[task.name] += 1
        twice = task.type != NO_TYPE and types[task.type] > 1
        if twice:
            detail = f"the number of {task.type} task is more than one"
            problems.add(pointer_to(at, "type"), "Duplicate", detail, "one task of each type but none")
        if not task.name:
            problems.add(pointer_to(at, "name"), "Required", "none type task has no name", "a DNS label")
        # Two tasks of one type without names get the same default name. The error about the type is enough.
        elif known[task.name] > 1 and not (twice and task.name == task.type):
            detail = f"there is more than one task named {shorten(task.name)}"
            problems.add(pointer_to(at, "name"), "Duplicate", detail, "a name of its own")
        elif wrong := names.dns_label(task.name):
            problems.add(pointer_to(at, "name"), "InvalidName", wrong, "a DNS label")
        elif job and len(name := longest_name(spec, job, task)) > names.DNS_LABEL_MAX:
            detail = f'the name "{shorten(name, 120)}" of its highest rank has {len(name)} characters'
            accepted = f"{names.DNS_LABEL_MAX} or fewer: a shorter metadata.name or task name"
            problems.add(pointer_to(at, "name"), "NameTooLong", detail, accepted)


def _check_bounds(spec: DIJobSpec, problems: Problems) -> None:
    least, most = least_total(spec), spec.max_replicas
    total = sum(task.replicas for task in spec.tasks)
    if most is not None and most < least:
        detail = f"at most {most} replicas are fewer than at least {least}, one of each task"
        if spec.min_replicas is not None and spec.min_replicas >= len(spec.tasks):
            detail = f"at most {most} replicas are fewer than the {least} of minReplicas"
        problems.add("/spec/maxReplicas", "OutOfRange", detail, f"{least} or more")
    elif total < least:
        problems.add(TASKS, "TooFewReplicas", f"the tasks have {total} replicas in all", f"{least} or more")
    elif most is not None and total > most:
        problems.add(TASKS, "TooManyReplicas", f"the tasks have {total} replicas in all", f"{most} or fewer")


def _check_room(spec: DIJobSpec, job: str, limits: Limits, problems: Problems) -> None:
    room = most_listed(spec, job, limits)
    accepted = f"{room} or fewer: no more are allowed here, or have room in the variable DI_NODES"
    if spec.max_replicas is not None and spec.max_replicas > room:
        detail = f"the job might have {spec.max_replicas} replicas"
        problems.add("/spec/maxReplicas", "TooManyReplicas", detail, accepted)
    elif (total := sum(task.replicas for task in spec.tasks)) > room:
        problems.add(TASKS, "TooManyReplicas", f"the tasks have {total} replicas in all", accepted)


def _check_templates(spec: DIJobSpec, limits: Limits, problems: Problems) -> None:
    """Check the templates with the job's volumes. An error in such a volume is reported once, at /spec/volumes."""
    reported: set[FieldError] = set()
    for index, task in enumerate(spec.tasks):
        if problems.full:
            return
        declared, found = declared_template(spec, task, index), Problems()
        validate_pod_template(declared.template, "", found)
        errors = [replace(error, pointer=declared.locate(error.pointer)) for error in found.errors]
        problems.extend(error for error in errors if error not in reported)
        reported.update(error for error in errors if error.pointer.startswith(VOLUMES))
        if not errors and (size := pod_bytes(spec, task)) > limits.max_rendered_pod_bytes:
            accepted = f"{limits.max_rendered_pod_bytes} bytes or fewer"
            problems.add(declared.locate(""), "PodTooLarge", f"its pods would have {size} bytes", accepted)


def _merge(spec: DIJobSpec, task: TaskSpec) -> Manifest:
    """Return the template with the job's volumes, or unchanged if its shape is wrong."""
    own = task.template.get("spec")
    if not spec.volumes or not isinstance(own, dict) or not isinstance(own.get("volumes") or [], list):
        return task.template
    return {**task.template, "spec": {**own, "volumes": [*(own.get("volumes") or ()), *spec.volumes]}}


def declared_template(spec: DIJobSpec, task: TaskSpec, index: int) -> DeclaredTemplate:
    """Return the task's template with the job's volumes. `locate` maps places in these volumes to /spec/volumes."""
    at = pointer_to(TASKS, index, "template")
    own = task.template.get("spec")
    volumes = own.get("volumes") if isinstance(own, dict) else None
    count = len(volumes) if isinstance(volumes, list) else 0
    ours = {pointer_to("/spec/volumes", count + i): pointer_to(VOLUMES, i) for i in range(len(spec.volumes))}

    def locate(pointer: str) -> str:
        home = next((p for p in ours if pointer == p or pointer.startswith(p + "/")), None)
        return at + pointer if home is None else ours[home] + pointer[len(home) :]

    return DeclaredTemplate(template=_merge(spec, task), locate=locate)
