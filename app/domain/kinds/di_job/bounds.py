"""Computes how large a DIJob can become.

Its spec, the length of pod names, and the size of the lists of hosts in its pods limit that.
"""

from typing import Final

import msgspec

from app.domain.kinds.di_job.environment import host, pod_name
from app.domain.kinds.di_job.spec import DIJobSpec, TaskSpec
from app.domain.kinds.job_kind import Limits
from app.domain.kubernetes.names import DNS_LABEL_MAX

# MAX_ARG_STRLEN of Linux: the length of a variable with its name and a final NUL, beyond which no process starts.
_VARIABLE_MAX: Final = 128 * 1024 - len("DI_NODES=") - 1
# An estimate of the bytes that jobgate adds to a template: metadata, labels, owner reference, finalizer, variables.
_POD_OVERHEAD: Final = 4096
_HIGHEST_RANK: Final = 99_999


def most_listed(spec: DIJobSpec, job: str, limits: Limits) -> int:
    """Return how many replicas fit into DI_NODES and, with the lists by task, into a pod, for the longest namespace."""
    longest = max(len(task.name) for task in spec.tasks)
    name = min(len(pod_name(job, "", _HIGHEST_RANK)) + longest, DNS_LABEL_MAX)
    entry = name + len(host(job, "", 0, "n" * DNS_LABEL_MAX)) - len(pod_name(job, "", 0)) + len(",")
    lists = min(_VARIABLE_MAX, *(_room_in_pod(spec, task, limits) for task in spec.tasks))
    return min(lists // entry, limits.max_replicas)


def pod_bytes(spec: DIJobSpec, task: TaskSpec) -> int:
    """Return the estimated size in bytes of a pod of the task, without the lists of hosts."""
    return len(msgspec.json.encode([task.template, spec.volumes])) + _POD_OVERHEAD


def least_total(spec: DIJobSpec) -> int:
    return max(spec.min_replicas or 0, len(spec.tasks))


def largest_sizes(spec: DIJobSpec, job: str, most: int) -> dict[str, int]:
    """Return the largest size of each task if every other task has one replica and all pod names are short enough."""
    spare = max(most - len(spec.tasks) + 1, 1)
    # With d digits there are 10^d ranks, 0 included.
    return {task.name: max(min(spare, 10 ** rank_digits(job, task.name)), task.replicas) for task in spec.tasks}


def rank_digits(job: str, task: str) -> int:
    """Return how many digits the rank in a pod name of this task can have; 0 if there is no room for one."""
    return max(DNS_LABEL_MAX - len(pod_name(job, task, 0)) + 1, 0)


def longest_name(spec: DIJobSpec, job: str, task: TaskSpec) -> str:
    """Return the pod name of the highest rank that the task can have under maxReplicas."""
    reached = max((spec.max_replicas or 0) - len(spec.tasks) + 1, task.replicas)
    return pod_name(job, task.name, reached - 1)


def _room_in_pod(spec: DIJobSpec, task: TaskSpec, limits: Limits) -> int:
    """Return the bytes for one list of hosts. Each container has two: all replicas by global rank, and all by task."""
    containers = len(task.template["spec"]["containers"])
    return (limits.max_rendered_pod_bytes - pod_bytes(spec, task)) // (2 * containers)
