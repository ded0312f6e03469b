"""The Workload of a job: what it requests, and what jobgate writes to its status.

    tasks ─▶ pod sets ─▶ Workload        conditions: PodsReady, Finished; given back: no admission, Requeued

Kueue reads only what the scheduler of a cluster reads, so a pod set has no other fields of its pods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from app.domain.kubernetes import labels, names
from app.domain.kubernetes.objects import Time
from app.domain.kubernetes.pod_requests import requests_at_pod_level, requests_of_container
from app.domain.kubernetes.topology import topology_request
from app.domain.manifests.metadata import job_labels, owned_metadata
from app.domain.plan import JobIdentity, JobPlan, Manifest, TaskPlan
from app.domain.queueing.priorities import Priority
from app.domain.queueing.workload_status import DEACTIVATED

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
# The bounds of all known versions of Kueue: 8 pod sets in 0.15, 18 in 0.19.
MOST_UNMERGED: Final = 8
MOST_POD_SETS: Final = 18
SUSPENDING_PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"
"""The annotation of a pod that another object of Kueue accounts for."""
GATES: Final = frozenset({"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"})
POD_FINALIZER: Final = "kueue.x-k8s.io/managed"
_UID_LENGTH: Final = 36
_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
# Kueue keeps the place of a Workload in its queue for these; after other evictions it decides itself when to requeue.
_REQUEUED_AT_ONCE: Final = frozenset({"Preempted", "NodeFailures"})
_TIME_ADMITTED: Final = "accumulatedPastExecutionTimeSeconds"
_TIME_EXCEEDED: Final = "MaximumExecutionTimeExceeded"
_POD_FIELDS: Final = (
    "affinity",
    "nodeSelector",
    "overhead",
    "priorityClassName",
    "resourceClaims",
    "runtimeClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER_FIELDS: Final = ("name", "image", "resources", "restartPolicy")
_CONTAINERS: Final = ("initContainers", "containers")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetPlan:
    """Replicas that are equal to the scheduler: those of one task, or of several `tasks` if there are many."""

    name: str
    count: int
    template: Manifest
    tasks: tuple[str, ...]
    topology: Manifest | None = None

    def manifest(self) -> Manifest:
        found = {"name": self.name, "count": self.count, "template": self.template}
        return found if self.topology is None else {**found, "topologyRequest": self.topology}


def workload_name(job_uid: str, number: int) -> str:
    """Return the name of a Workload. The first one of a job has the number 0 and the name of its anchor."""
    return labels.anchor_name(job_uid) + (f"-{number}" if number else "")


def job_uid_of(name: str) -> str:
    """Return the uid of the job in the name of its Workload, and any text for another name."""
    return name.removeprefix(labels.anchor_name(""))[:_UID_LENGTH]


def number_of(name: str, job_uid: str) -> int | None:
    """Return the number of the Workload of a job with this name; None if no Workload of the job has it."""
    rest = name.removeprefix(labels.anchor_name(job_uid)).removeprefix("-")
    number = int(rest) if rest.isdecimal() and rest.isascii() else 0
    return number if name == workload_name(job_uid, number) else None


def pod_sets(plan: JobPlan, counts: Mapping[str, int] | None = None) -> tuple[PodSetPlan, ...]:
    """Return the pod sets of a job, or those of `counts` replicas of its tasks.

    If they can be too many, those of equal tasks are one.
    """
    if counts is None:
        counts = {task.name: task.size for task in plan.tasks}
    of_tasks = [
        _pod_set(index, task, counts[task.name])
        for index, task in enumerate(plan.tasks)
        if task.size and counts.get(task.name)
    ]
    # Names of tasks can differ in case only.
    if len({pod_set.name for pod_set in of_tasks}) < len(of_tasks):
        of_tasks = [replace(pod_set, name=f"task-{index}") for index, pod_set in enumerate(of_tasks)]
    return tuple(of_tasks) if len(of_tasks) <= MOST_UNMERGED else _merge(of_tasks)


def _pod_set(index: int, task: TaskPlan, count: int) -> PodSetPlan:
    template = task.render(0).template
    return PodSetPlan(
        name=task.name.lower() if names.dns_label(task.name.lower()) is None else f"task-{index}",
        count=count,
        template=_template(template),
        tasks=(task.name,),
        topology=topology_request(template),
    )


def _merge(of_tasks: Sequence[PodSetPlan]) -> tuple[PodSetPlan, ...]:
    """Return one pod set for each template and topology, with the name of the first one that has it."""
    merged: list[PodSetPlan] = []
    for pod_set in of_tasks:
        for index, known in enumerate(merged):
            if (known.template, known.topology) == (pod_set.template, pod_set.topology):
                tasks = (*known.tasks, *pod_set.tasks)
                merged[index] = replace(known, count=known.count + pod_set.count, tasks=tasks)
                break
        else:
            merged.append(pod_set)
    return tuple(merged)


def _template(template: Manifest) -> Manifest:
    """Return what the scheduler reads of a pod template."""
    spec = template["spec"]
    kept: Manifest = {name: spec[name] for name in _POD_FIELDS if spec.get(name)}
    for field in _CONTAINERS:
        if spec.get(field):
            kept[field] = [_container(item) for item in spec[field]]
    # Without limits of the pod: versions of Kueue differ in what they take for a request that is not given.
    if requests := requests_at_pod_level(spec):
        kept["resources"] = {"requests": requests}
    return {"spec": kept}


def _container(container: Manifest) -> Manifest:
    """Return a container with all its requests: for those that are not given, Kueue would take the defaults of a
    LimitRange, where the API server takes the limits.
    """
    kept = {key: container[key] for key in _CONTAINER_FIELDS if container.get(key)}
    if requests := requests_of_container(container):
        kept["resources"] = {**container["resources"], "requests": requests}
    return kept


def workload_labels(identity: JobIdentity) -> dict[str, str]:
    """Return the labels by which jobgate finds a Workload, and Kueue the job that preempts another one."""
    return {**job_labels(identity), _JOB_UID: identity.uid}


def workload_manifest(
    plan: JobPlan,
    queue: str,
    priority: Priority,
    anchor_uid: str,
    *,
    number: int = 0,
    counts: Mapping[str, int] | None = None,
) -> Manifest:
    """Return the Workload of a job with this number, for `counts` replicas of its tasks; by default for all.

    Its finalizer keeps its quota until the last of its pods is gone.
    """
    identity = plan.identity
    metadata = owned_metadata(identity, workload_name(identity.uid, number), workload_labels(identity), anchor_uid)
    metadata["finalizers"] = [labels.ADMISSION_FINALIZER]
    metadata["annotations"] = {labels.QUEUE: queue}
    spec = {"queueName": queue, "podSets": [item.manifest() for item in pod_sets(plan, counts)]}
    spec |= {field: value for field, value in priority.patch().items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec}


def give_back(workload: Manifest, reason: str, message: str, now: datetime) -> Manifest:
    """Return the status of a Workload without its admission, so that its quota is free and Kueue may queue it again."""
    done: tuple[str, ...] = ()
    if reason.startswith(DEACTIVATED):
        # Of the reasons of a deactivation, such as DeactivatedDueToAdmissionCheck, Kueue queues only this one again.
        reason = DEACTIVATED
        # Kueue can set it once more while the pods stop, and would deactivate the Workload as soon as it is activated.
        done = ("DeactivationTarget",)
    changes = [
        _condition("QuotaReserved", "Pending", message, is_true=False),
        _condition("Admitted", "NoReservation", "The workload has no reservation", is_true=False),
        _condition("Requeued", reason, message, is_true=reason in _REQUEUED_AT_ONCE),
    ]
    if any(item["type"] == "PodsReady" for item in _conditions(workload)):
        # With the reason WaitForRecovery, Kueue would evict the next admission by the time of this one.
        changes.append(_condition("PodsReady", "WaitForStart", "no pod runs", is_true=False))
    conditions = [item for item in _with_conditions(workload, changes, now) if item["type"] not in done]
    return {"admission": None, "conditions": conditions, **_time_admitted(workload, now)}


def _time_admitted(workload: Manifest, now: datetime) -> Manifest:
    """Return for how long the Workload has been admitted in all. Kueue subtracts it from the maximum execution time,
    and begins anew when that is exceeded.
    """
    holding = {item["type"]: item for item in _conditions(workload) if item["status"] == "True"}
    if any(_TIME_EXCEEDED in holding[kind]["reason"] for kind in ("Evicted", "DeactivationTarget") if kind in holding):
        return {_TIME_ADMITTED: None}
    if "Admitted" not in holding:
        return {}
    try:
        since = msgspec.convert(holding["Admitted"]["lastTransitionTime"], Time)
    except msgspec.ValidationError:
        since = now
    before = workload["status"].get(_TIME_ADMITTED) or 0
    return {_TIME_ADMITTED: before + max(0, int((now - since).total_seconds()))}


def pods_ready_status(workload: Manifest, now: datetime, *, ready: bool) -> Manifest:
    """Return the status of an admitted Workload all of whose pods have started, or that was ready and has lost one."""
    # The reason WaitForRecovery begins Kueue's recoveryTimeout.
    started, waits = ("Started", "all pods of the job have started"), ("WaitForRecovery", "a pod must start again")
    reason, message = started if ready else waits
    return with_condition(workload, "PodsReady", reason, message, now, is_true=ready)


def with_condition(
    workload: Manifest, kind: str, reason: str, message: str, now: datetime, *, is_true: bool = True
) -> Manifest:
    """Return the status of a Workload with a condition."""
    change = _condition(kind, reason, message, is_true=is_true)
    return {"conditions": _with_conditions(workload, [change], now)}


def reclaimable_status(counts: Mapping[str, int]) -> Manifest:
    """Return the status of a Workload that needs the quota of so many pods of each pod set no more."""
    return {"reclaimablePods": [{"name": name, "count": count} for name, count in sorted(counts.items())]}


def _condition(kind: str, reason: str, message: str, *, is_true: bool) -> Manifest:
    return {"type": kind, "status": "True" if is_true else "False", "reason": reason, "message": message}


def _conditions(workload: Manifest) -> list[dict[str, Any]]:
    return list((workload.get("status") or {}).get("conditions") or [])


def _with_conditions(workload: Manifest, changes: Sequence[Manifest], now: datetime) -> list[Manifest]:
    """Return all conditions of the Workload: a merge patch replaces the whole list."""
    changed = {item["type"]: item for item in changes}
    kept = [item for item in _conditions(workload) if item["type"] not in changed]
    before = {item["type"]: item for item in _conditions(workload)}
    return [*kept, *(_with_time(item, before.get(kind), workload, now) for kind, item in changed.items())]


def _with_time(condition: Manifest, before: Manifest | None, workload: Manifest, now: datetime) -> Manifest:
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before["status"] == condition["status"]:
        since = before["lastTransitionTime"]
    generation = workload["metadata"].get("generation", 0)
    return {**condition, "lastTransitionTime": since, "observedGeneration": generation}
