"""Validates the spec of a GenericJob. Names and sizes are checked for the highest rank of each type."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kinds.generic_job.plan import replica_name, scope_of, template_in_mode
from app.domain.kinds.generic_job.ports import check_ports
from app.domain.kinds.generic_job.spec import GenericJobSpec, ReplicaSpec
from app.domain.kinds.generic_job.variables import (
    Scope,
    check_texts,
    has_references,
    texts_of,
    with_variables,
)
from app.domain.kinds.job_kind import Limits
from app.domain.kubernetes import names
from app.domain.pod_template import validate_pod_template

# An estimate of the bytes that jobgate adds to a template: metadata, labels, owner reference, finalizer.
_POD_OVERHEAD: Final = 4096
# Far beyond any job. The bounds keep the time of the checks short.
_MAX_TYPES: Final = 256
_MAX_PORTS: Final = 256


def validate(spec: GenericJobSpec, job: str, base: str, limits: Limits, problems: Problems) -> None:
    """Report every error of a spec. Lists that are too long are reported alone, before any other check.

    `job` is the name of the job. It is empty if the name is not valid; names that contain it are then not checked.
    """
    if not _has_bounds(spec, base, limits, problems):
        return
    specs = f"{base}/replicaSpecs"
    _check_types(spec, specs, problems)
    _check_totals(spec, specs, limits, problems)
    _check_rules(spec, base, problems)
    _check_modes(spec, f"{base}/runMode", problems)
    if spec.service:
        check_ports(spec.service.ports, f"{base}/service/ports", problems)
    queueing = spec.scheduler.t9k_scheduler if spec.scheduler else None
    if queueing and (wrong := names.label_value(queueing.queue)):
        at = pointer_to(base, "scheduler", "t9kScheduler", "queue")
        problems.add(at, "InvalidName", wrong, "the name of a queue")
    scope = scope_of(spec, job)
    _check_mode_variables(spec, scope, f"{base}/runMode", problems)
    _check_job_name(spec, job, problems)
    for index, replica in enumerate(spec.replica_specs):
        if problems.full:
            return
        at = f"{specs}/{index}"
        _check_names(replica, job, at, problems)
        template = f"{at}/template"
        before = len(problems)
        validate_pod_template(replica.template, template, problems)
        check_texts(texts_of(replica.template.get("spec")), scope, f"{template}/spec", problems)
        # A template with errors may not be possible to render.
        if len(problems) == before:
            _check_size(spec, replica, scope, template, limits, problems)


def _has_bounds(spec: GenericJobSpec, base: str, limits: Limits, problems: Problems) -> bool:
    ports = len(spec.service.ports) if spec.service else 0
    before = len(problems)
    for name, count, most in (
        (("replicaSpecs",), len(spec.replica_specs), _MAX_TYPES),
        (("successRules",), len(spec.success_rules), limits.max_replicas),
        (("failureRules",), len(spec.failure_rules), limits.max_replicas),
        (("service", "ports"), ports, _MAX_PORTS),
    ):
        if count > most:
            problems.add(pointer_to(base, *name), "TooMany", f"the list has {count} entries", f"{most} or fewer")
    return len(problems) == before


def _check_types(spec: GenericJobSpec, specs: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, replica in enumerate(spec.replica_specs):
        if wrong := names.dns_label(replica.type):
            problems.add(pointer_to(specs, index, "type"), "InvalidName", wrong, "a DNS label")
        if replica.type in seen:
            detail = f'type "{shorten(replica.type)}" is declared twice'
            problems.add(pointer_to(specs, index, "type"), "Duplicate", detail, "a type of its own")
        seen.add(replica.type)


def _check_totals(spec: GenericJobSpec, specs: str, limits: Limits, problems: Problems) -> None:
    total = sum(replica.replicas for replica in spec.replica_specs)
    if total > limits.max_replicas:
        accepted = f"{limits.max_replicas} replicas or fewer in all"
        at = pointer_to(specs, 0, "replicas") if len(spec.replica_specs) == 1 else specs
        problems.add(at, "TooManyReplicas", f"the job would have {total} replicas", accepted)
    if total == 0:
        problems.add(specs, "NoReplicas", "the job would have no replica at all", "at least one replica")


def _check_rules(spec: GenericJobSpec, base: str, problems: Problems) -> None:
    replicas = {replica.type: replica.replicas for replica in spec.replica_specs}
    for name, rules in (("successRules", spec.success_rules), ("failureRules", spec.failure_rules)):
        for index, rule in enumerate(rules):
            if problems.full:
                return
            at = f"{base}/{name}/{index}"
            if not rule:
                problems.add(at, "EmptyRule", "the rule names no replicas", "ranks by replica type: {worker: [0]}")
            for task, ranks in rule.items():
                _check_ranks(task, ranks, replicas.get(task), pointer_to(at, task), problems)


def _check_ranks(task: str, ranks: Sequence[int], replicas: int | None, at: str, problems: Problems) -> None:
    if replicas is None:
        problems.add(at, "UnknownType", f'no replica spec has the type "{shorten(task)}"', "a type of replicaSpecs")
        return
    if not ranks:
        problems.add(at, "EmptyRule", "the list of ranks is empty", "at least one rank")
    seen: set[int] = set()
    for position, rank in enumerate(ranks):
        if problems.full:
            return
        if rank >= replicas:
            accepted = f"0 to {replicas - 1}" if replicas else "none: the type has no replicas"
            problems.add(pointer_to(at, position), "UnknownRank", f"there is no rank {rank} of this type", accepted)
        if rank in seen:
            problems.add(pointer_to(at, position), "Duplicate", f"rank {rank} is listed twice", "each rank once")
        seen.add(rank)


def _check_modes(spec: GenericJobSpec, base: str, problems: Problems) -> None:
    debug, pause = spec.run_mode.debug, spec.run_mode.pause
    if debug.enabled and pause.enabled:
        problems.add(base, "Conflict", "a job cannot be in debug mode and paused at once", "one of debug and pause")
    if not debug.replica_specs and not pause.resume_specs:
        return
    declared = {replica.type for replica in spec.replica_specs}
    _check_mode_types([item.type for item in debug.replica_specs], declared, f"{base}/debug/replicaSpecs", problems)
    _check_mode_types([item.type for item in pause.resume_specs], declared, f"{base}/pause/resumeSpecs", problems)


def _check_mode_types(types: Iterable[str], declared: set[str], base: str, problems: Problems) -> None:
    seen: Counter[str] = Counter()
    for index, name in enumerate(types):
        at = pointer_to(base, index, "type")
        seen[name] += 1
        if name not in declared:
            problems.add(at, "UnknownType", "no replica spec has this type", "a type of replicaSpecs")
        elif seen[name] == 2:
            problems.add(at, "Duplicate", f'type "{shorten(name)}" is listed twice', "each type once")


def _check_mode_variables(spec: GenericJobSpec, scope: Scope, base: str, problems: Problems) -> None:
    for index, debug in enumerate(spec.run_mode.debug.replica_specs):
        at = pointer_to(base, "debug", "replicaSpecs", index, "command")
        check_texts((((i,), text) for i, text in enumerate(debug.command)), scope, at, problems)
    for index, resume in enumerate(spec.run_mode.pause.resume_specs):
        for name, texts in (("command", resume.command or []), ("args", resume.args or [])):
            at = pointer_to(base, "pause", "resumeSpecs", index, name)
            check_texts((((i,), text) for i, text in enumerate(texts)), scope, at, problems)


def _check_job_name(spec: GenericJobSpec, job: str, problems: Problems) -> None:
    """Check the job's name as the beginning of the names of Services."""
    if job and spec.service and spec.service.ports and (wrong := names.dns_1035_label(job)):
        detail = f"the Services of the replicas have names that begin with it: {wrong}"
        problems.add("/metadata/name", "InvalidName", detail, "a name that begins with a letter and has no dots")


def _check_names(replica: ReplicaSpec, job: str, at: str, problems: Problems) -> None:
    """Check the length of the name of the last replica, which is that of a pod, a host and a Service, and a label."""
    if not job or names.dns_label(replica.type):
        return
    name = replica_name(job, replica.type, max(replica.replicas, 1) - 1)
    if wrong := names.label_value(name):
        detail = f'the name "{shorten(name, 120)}" of its last replica: {wrong}'
        problems.add(pointer_to(at, "type"), "NameTooLong", detail, "a shorter metadata.name or type")


def _check_size(
    spec: GenericJobSpec, replica: ReplicaSpec, scope: Scope, at: str, limits: Limits, problems: Problems
) -> None:
    """Check the size of the pod of the last rank, which is the largest of its replica type."""
    # resumeSpecs can make the pods of a resumed job larger.
    for resumed in (False, True) if spec.run_mode.pause.resume_specs else (False,):
        template = template_in_mode(spec, replica, resumed=resumed)
        if has_references(template["spec"]):
            last = with_variables(template["spec"], scope, replica.type, max(replica.replicas, 1) - 1)
            template = {**template, "spec": last}
        size = len(msgspec.json.encode(template)) + _POD_OVERHEAD
        if size > limits.max_rendered_pod_bytes:
            accepted = f"{limits.max_rendered_pod_bytes} bytes or fewer, with variables filled in"
            problems.add(at, "PodTooLarge", f"the pod of its last replica would have {size} bytes", accepted)
            break
