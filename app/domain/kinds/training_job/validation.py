"""Validates the spec of a TrainingJob. Names and sizes are checked for the largest size of the job."""

from collections.abc import Mapping
from typing import Final

import msgspec

from app.domain.errors import FieldError, Problems, pointer_to, shorten
from app.domain.kinds.job_kind import Limits
from app.domain.kinds.training_job.plan import host_name, index_label, pod_name, sizes
from app.domain.kinds.training_job.spec import TrainingJobSpec, WorkerSpec
from app.domain.kinds.training_job.templates import (
    HOSTS_PATH,
    HOSTS_VOLUME,
    PSERVER,
    TRAINER,
    ports_of,
    role_template,
    roles_of,
)
from app.domain.kubernetes import names
from app.domain.plan import Manifest
from app.domain.pod_template import validate_pod_template

NOT_FAULT_TOLERANT: Final = "max-instances should be equal to min-instances when fault_tolerant is disabled"
_LAST_PORT: Final = 65_535
# An estimate of the bytes that jobgate adds to a template: metadata, labels, owner reference, finalizer, host list.
_POD_OVERHEAD: Final = 4096
# The limit of Kubernetes on the data of a ConfigMap, minus room for the keys.
_CONFIG_MAP_BYTES: Final = 1024 * 1024 - 1024
_ANY_NAMESPACE: Final = "n" * names.DNS_LABEL_MAX


def validate(spec: TrainingJobSpec, job: str, namespace: str | None, limits: Limits, problems: Problems) -> None:
    """Report every error of a spec with defaults.

    `job` is the name of the job. It is empty if the name is not valid; names that contain it are then not checked. If
    `namespace` is None, the longest possible name is assumed.
    """
    _check_instances(spec.trainer, TRAINER, problems)
    _check_instances(spec.pserver, PSERVER, problems)
    if not spec.fault_tolerant and spec.trainer.min_instance < spec.trainer.max_instance:
        at = "/spec/trainer/max-instance"
        problems.add(at, "NotFaultTolerant", NOT_FAULT_TOLERANT, "min-instance, or fault_tolerant: true")
    largest = sizes(spec, max(spec.trainer.min_instance, spec.trainer.max_instance))
    counted = _check_total(sum(largest.values()), limits, problems)
    if job and counted:
        _check_names(largest, job, problems)
        if spec.fault_tolerant:
            _check_hosts(largest, job, namespace or _ANY_NAMESPACE, problems)
    ported = _check_ports(spec, problems)
    if wrong := names.label_value(spec.annotations.priority):
        problems.add("/spec/annotations/priority", "InvalidLabel", wrong, "the value of a label")
    if spec.fault_tolerant:
        _check_reserved(spec, problems)
    # A port beyond the last one would be reported again for each role and each port of the range.
    if ported:
        _check_pods(spec, job or "job", limits, problems)


def _check_instances(role: WorkerSpec, name: str, problems: Problems) -> None:
    if role.max_instance < role.min_instance:
        problems.add(
            pointer_to("/spec", name, "max-instance"),
            "OutOfRange",
            f"max-instance is less than min-instance, which is {role.min_instance}",
            f"{role.min_instance} or more",
        )


def _check_total(total: int, limits: Limits, problems: Problems) -> bool:
    if total <= limits.max_replicas:
        return True
    accepted = f"{limits.max_replicas} replicas or fewer in all"
    problems.add("/spec", "TooManyReplicas", f"at its largest the job would have {total} replicas", accepted)
    return False


def _check_names(largest: Mapping[str, int], job: str, problems: Problems) -> None:
    """Check the job's name as the name of its Service, and as the beginning of names of pods and of the index label."""
    at = "/metadata/name"
    if wrong := names.dns_1035_label(job):
        problems.add(at, "InvalidName", f"the name of its Service: {wrong}", "a DNS-1035 label, which has no dots")
        return
    last = [pod_name(job, role, count - 1) for role, count in largest.items()]
    longest = max(last, key=len)
    if wrong := names.dns_label(longest):
        problems.add(at, "NameTooLong", f'the name "{shorten(longest, 120)}" of a replica: {wrong}', "a shorter name")
    # The namespace is the prefix of the key. It is a valid prefix in any case, so any name stands for it.
    key = index_label("namespace", job, TRAINER)
    if wrong := names.label_key(key):
        problems.add(at, "NameTooLong", f"the label with a trainer's index: {wrong}", "a shorter name")


def _check_hosts(largest: Mapping[str, int], job: str, namespace: str, problems: Problems) -> None:
    """Check the size of the list of hosts. It has each host twice: in the JSON file and in the text file."""
    host = max(len(host_name(job, namespace, role, count - 1)) for role, count in largest.items())
    # Four further bytes for each host: quotes and a comma in the JSON file, and a newline in the text file.
    size = sum(largest.values()) * (2 * host + 4)
    if size > _CONFIG_MAP_BYTES:
        accepted = f"{_CONFIG_MAP_BYTES} bytes or fewer: a smaller max-instance or shorter names"
        detail = f"at its largest the job's host list would have {size} bytes"
        problems.add("/spec/trainer/max-instance", "HostsTooLarge", detail, accepted)


def _check_ports(spec: TrainingJobSpec, problems: Problems) -> bool:
    """Check the ports of each role and return whether they are valid. A role has one range, so no port is double."""
    before = len(problems)
    for role in (PSERVER, TRAINER):
        ports = ports_of(spec, role)
        if not ports:
            continue
        field = "trainer_ports_num" if role == TRAINER and spec.frame_work is not None else "ports_num"
        if ports.start == 0:
            problems.add("/spec/trainer_port", "OutOfRange", "is not a port number", f"1 to {_LAST_PORT}")
        elif ports.stop - 1 > _LAST_PORT:
            detail = f"the ports from {ports.start} on would end at {ports.stop - 1}"
            problems.add(pointer_to("/spec", field), "OutOfRange", detail, f"an end at {_LAST_PORT} or before")
    return len(problems) == before


def _check_reserved(spec: TrainingJobSpec, problems: Problems) -> None:
    """Report volumes and mounts that would conflict with the list of hosts of a fault tolerant job."""
    for index, volume in enumerate(spec.volumes):
        if volume.get("name") == HOSTS_VOLUME:
            at = pointer_to("/spec/volumes", index, "name")
            problems.add(at, "Reserved", "the volume of this name holds the job's host list", "another name")
    for index, mount in enumerate(spec.volume_mounts):
        if str(mount.get("mountPath")).rstrip("/") == HOSTS_PATH:
            at = pointer_to("/spec/VolumeMounts", index, "mountPath")
            problems.add(at, "Reserved", "the job's host list is mounted here", "another path")


def _check_pods(spec: TrainingJobSpec, job: str, limits: Limits, problems: Problems) -> None:
    """Check each role's pod by the rules of Kubernetes, and report errors at the fields of the spec."""
    reported: set[FieldError] = set()
    for role in roles_of(spec):
        if problems.full:
            return
        made = role_template(spec, role, job)
        found = Problems()
        validate_pod_template(made.template, "", found)
        for error in found.errors:
            at = made.origin(error.pointer, role)
            mapped = FieldError(pointer=at, code=error.code, detail=error.detail, accepted=error.accepted)
            if mapped not in reported:
                reported.add(mapped)
                problems.extend([mapped])
        if not found:
            _check_size(made.template, role, limits, problems)


def _check_size(template: Manifest, role: str, limits: Limits, problems: Problems) -> None:
    size = len(msgspec.json.encode(template)) + _POD_OVERHEAD
    if size > limits.max_rendered_pod_bytes:
        accepted = f"{limits.max_rendered_pod_bytes} bytes or fewer"
        problems.add(pointer_to("/spec", role), "PodTooLarge", f"its pod would have {size} bytes", accepted)
