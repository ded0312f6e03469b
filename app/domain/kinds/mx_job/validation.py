"""Validates the spec of an MxJob: the checks of upstream, in its order and with its messages, then those of jobgate.

Upstream stops at the first error; jobgate reports all errors at once.
"""

from typing import Any, Final

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kinds.job_kind import Limits
from app.domain.kinds.mx_job.plan import MXNET, replica_name
from app.domain.kinds.mx_job.spec import Mode, MxJobSpec, MxReplicaSpec, MxRole
from app.domain.kubernetes import names
from app.domain.pod_template import validate_pod_template

_ROLES: Final = ", ".join(MxRole)
# More than enough for three roles. The bound keeps the time of the checks short.
_MAX_SPECS: Final = 64


def validate(spec: MxJobSpec, job: str, base: str, limits: Limits, problems: Problems) -> None:
    """Report every error of a spec that has its RuntimeId.

    `job` is the name of the job. It is empty if the name is not valid; names that contain it are then not checked.
    """
    specs = pointer_to(base, "replicaSpecs")
    if len(spec.replica_specs) > _MAX_SPECS:
        detail = f"the list has {len(spec.replica_specs)} entries"
        problems.add(specs, "TooMany", detail, f"{_MAX_SPECS} or fewer, one of each role")
        return
    _check_entries(spec, specs, problems)
    _check_roles(spec, specs, problems)
    _check_mode(spec, base, problems)
    _check_schedulers(spec, specs, problems)
    _check_counts(spec, specs, limits, problems)
    _check_names(spec, job, base, problems)
    for index, replica in spec.roles:
        if replica.template is not None:
            validate_pod_template(replica.template, pointer_to(specs, index, "template"), problems)


def _check_entries(spec: MxJobSpec, specs: str, problems: Problems) -> None:
    for index, replica in enumerate(spec.replica_specs):
        if replica is None:
            at = pointer_to(specs, index)
            problems.add(at, "ReplicaSpecsContainNil", "ReplicaSpecs contain nil", "a replica spec")
        elif replica.template is None:
            at = pointer_to(specs, index, "template")
            problems.add(at, "MissingTemplate", "Replica is missing Template", "a pod template")


def _check_roles(spec: MxJobSpec, specs: str, problems: Problems) -> None:
    for index, replica in spec.roles:
        named = replica.mx_replica_type
        if named not in set(MxRole):
            detail = f"MxReplicaSpec.MxReplicaType is {shorten(named)} but must be one of [{' '.join(MxRole)}]"
            problems.add(pointer_to(specs, index, "mxReplicaType"), "InvalidReplicaType", detail, f"one of {_ROLES}")
        if replica.template is not None and not _has_mxnet(replica.template):
            at = pointer_to(specs, index, "template", "spec", "containers")
            detail = f"Replica type {shorten(named)} is missing a container for mxnet"
            problems.add(at, "MissingMxnetContainer", detail, f"a container named {MXNET}")


def _has_mxnet(template: dict[str, Any]) -> bool:
    pod_spec = template.get("spec")
    containers = pod_spec.get("containers") if isinstance(pod_spec, dict) else None
    listed = containers if isinstance(containers, list) else []
    return any(isinstance(container, dict) and container.get("name") == MXNET for container in listed)


def _check_mode(spec: MxJobSpec, base: str, problems: Problems) -> None:
    specs = pointer_to(base, "replicaSpecs")
    if spec.job_mode == Mode.LOCAL:
        _check_local(spec, specs, problems)
    elif spec.job_mode == Mode.DIST:
        present = {replica.mx_replica_type for _, replica in spec.roles}
        for role in MxRole:
            if role not in present:
                detail = f"dist job mode without replica type {role}"
                problems.add(specs, "MissingReplicaType", detail, f"one replica spec each of {_ROLES}")
    else:
        detail = f"unknown job mode {shorten(spec.job_mode)}".rstrip()
        problems.add(pointer_to(base, "jobMode"), "UnknownJobMode", detail, "one of local, dist")


def _check_local(spec: MxJobSpec, specs: str, problems: Problems) -> None:
    for index, replica in spec.roles:
        if replica.mx_replica_type in (MxRole.SCHEDULER, MxRole.SERVER):
            detail = "job mode is local, but its replicas set have replicas type other than worker"
            problems.add(pointer_to(specs, index, "mxReplicaType"), "RolesInLocalMode", detail, MxRole.WORKER)
    for index, replica in spec.roles:
        if replica.mx_replica_type == MxRole.WORKER and replica.replicas > 1:
            detail = "job mode is local, but it has more than 1 worker"
            problems.add(pointer_to(specs, index, "replicas"), "WorkersInLocalMode", detail, "1")
    if not any(replica.mx_replica_type == MxRole.WORKER for _, replica in spec.roles):
        problems.add(specs, "NoReplicas", "job mode is local, but it has no worker", "one replica spec of type WORKER")


def _check_schedulers(spec: MxJobSpec, specs: str, problems: Problems) -> None:
    for index, replica in spec.roles:
        if replica.mx_replica_type == MxRole.SCHEDULER and replica.replicas != 1:
            at = pointer_to(specs, index, "replicas")
            problems.add(at, "SchedulerReplicas", "The SCHEDULER must have Replicas = 1", "1")


def _check_counts(spec: MxJobSpec, specs: str, limits: Limits, problems: Problems) -> None:
    seen: set[str] = set()
    for index, replica in spec.roles:
        named = replica.mx_replica_type
        if named in seen:
            at = pointer_to(specs, index, "mxReplicaType")
            problems.add(at, "Duplicate", f"{shorten(named)} is declared twice", "each role once")
        seen.add(named)
        if replica.replicas < 1 and named != MxRole.SCHEDULER:
            problems.add(pointer_to(specs, index, "replicas"), "OutOfRange", "the number is too small", "1 or more")
    total = sum(max(replica.replicas, 0) for _, replica in spec.roles)
    if total > limits.max_replicas:
        accepted = f"{limits.max_replicas} replicas or fewer in all"
        problems.add(specs, "TooManyReplicas", f"the job would have {total} replicas", accepted)


def _check_names(spec: MxJobSpec, job: str, base: str, problems: Problems) -> None:
    """Check the names of replicas as names of pods and hosts, and that of the scheduler as the name of a Service."""
    given = spec.runtime_id or ""
    if wrong := names.dns_label(given):
        at = pointer_to(base, "RuntimeId")
        problems.add(at, "InvalidName", f'"{shorten(given)}": {wrong}', "lower-case letters and digits; four are drawn")
        return
    if not job:
        return
    longest = max((_last_name(job, given, replica) for _, replica in spec.roles), key=len, default="")
    if len(longest) > names.DNS_LABEL_MAX:
        detail = (
            f'the name "{shorten(longest, 120)}" of its last replica has more than {names.DNS_LABEL_MAX} characters'
        )
        problems.add("/metadata/name", "NameTooLong", detail, "a shorter metadata.name or RuntimeId")
    if spec.job_mode == Mode.DIST and (wrong := names.dns_1035_label(job)):
        detail = f"the scheduler's Service has a name that begins with the job's: {wrong}"
        problems.add("/metadata/name", "InvalidName", detail, "letters, digits and -, a letter first")


def _last_name(job: str, runtime_id: str, replica: MxReplicaSpec) -> str:
    # The role may not be valid, and as long as the body of the request.
    return replica_name(job, shorten(replica.mx_replica_type).lower(), runtime_id, max(replica.replicas, 1) - 1)
