"""How large a DIJob may become: what its spec says, what names have room for, and what its pods' lists can hold."""

from typing import Final

import msgspec

from app.domain.dialects.base import Limits
from app.domain.dialects.di_job.environment import host, pod_name
from app.domain.dialects.di_job.spec import DIJobSpec, TaskSpec
from app.domain.kubernetes.names import DNS_LABEL_MAX

# MAX_ARG_STRLEN of Linux: no process starts with a longer variable, its name and a closing NUL included.
_VARIABLE_MAX: Final = 128 * 1024 - len("DI_NODES=") - 1
# What jobgate adds to a template: metadata, labels, owner reference, finalizer, the short variables.
_POD_OVERHEAD: Final = 4096
_HIGHEST_RANK: Final = 99_999


def most_listed(spec: DIJobSpec, job: str, limits: Limits) -> int:
    """Replicas that fit into DI_NODES and, with the lists by task, into a pod; the namespace may still be any."""
    longest = max(len(task.name) for task in spec.tasks)
    name = min(len(pod_name(job, "", _HIGHEST_RANK)) + longest, DNS_LABEL_MAX)
    one = name + len(host(job, "", 0, "n" * DNS_LABEL_MAX)) - len(pod_name(job, "", 0)) + len(",")
    lists = min(_VARIABLE_MAX, *(_room_in_pod(spec, task, limits) for task in spec.tasks))
    return min(lists // one, limits.max_replicas)


def pod_bytes(spec: DIJobSpec, task: TaskSpec) -> int:
    """Size of a task's pods without the lists of nodes."""
    return len(msgspec.json.encode([task.template, spec.volumes])) + _POD_OVERHEAD


def least_total(spec: DIJobSpec) -> int:
    return max(spec.min_replicas or 0, len(spec.tasks))


def largest_sizes(spec: DIJobSpec, job: str, most: int) -> dict[str, int]:
    """The largest size of each task: all that the others can spare, as long as the last rank's name has room."""
    spare = max(most - len(spec.tasks) + 1, 1)
    return {task.name: max(min(spare, 10 ** rank_digits(job, task.name)), task.replicas) for task in spec.tasks}


def rank_digits(job: str, task: str) -> int:
    """Digits that a rank may have in the names of this task's pods; 0 when not even one has room."""
    return max(DNS_LABEL_MAX - len(pod_name(job, task, 0)) + 1, 0)


def longest_name(spec: DIJobSpec, job: str, task: TaskSpec) -> str:
    """The name of the highest rank that the spec lets the task reach."""
    reached = max((spec.max_replicas or 0) - len(spec.tasks) + 1, task.replicas)
    return pod_name(job, task.name, reached - 1)


def _room_in_pod(spec: DIJobSpec, task: TaskSpec, limits: Limits) -> int:
    """Bytes for each of two lists, all replicas once by rank and once by task, in every container."""
    containers = len(task.template["spec"]["containers"])
    return (limits.max_rendered_pod_bytes - pod_bytes(spec, task)) // (2 * containers)
