"""A whole plan as objects, for dry runs and for people who want to see what would be made; and what that takes."""

import msgspec

from app.domain.manifests.config import anchor_manifest, hosts_manifest
from app.domain.manifests.gang import gang_manifest
from app.domain.manifests.pods import pod_manifest
from app.domain.manifests.services import service_manifest
from app.domain.name_ranges import NameKind, NameRange, merged, numbered, without
from app.domain.plan import JobPlan, Manifest, TaskPlan


def objects_of(plan: JobPlan, anchor_uid: str | None = None) -> list[Manifest]:
    """Every object of a first attempt in the order of creation. Before the anchor exists, nothing names an owner."""
    objects = [anchor_manifest(plan)]
    objects += [service_manifest(plan, service, anchor_uid) for service in plan.services]
    if plan.gang is not None:
        objects.append(gang_manifest(plan, plan.gang, anchor_uid))
    if plan.hosts is not None:
        objects.append(hosts_manifest(plan, plan.hosts, anchor_uid))
    for replica in plan.replicas.values():
        if replica.service is not None:
            objects.append(service_manifest(plan, replica.service, anchor_uid))
        objects.append(pod_manifest(plan, replica, 1, anchor_uid))
    return objects


def largest_pod_bytes(plan: JobPlan) -> int:
    """Size of the largest pod of the job."""
    return max(pod_bytes(plan).values(), default=0)


def pod_bytes(plan: JobPlan) -> dict[str, int]:
    """Size of the largest pod of each task that has replicas: the last rank's, whose numbers are the longest."""
    no_uid = "00000000-0000-0000-0000-000000000000"
    return {
        task.name: len(msgspec.json.encode(pod_manifest(plan, task.render(task.size - 1), 1, no_uid)))
        for task in plan.tasks
        if task.size
    }


def reserved_names(plan: JobPlan) -> list[NameRange]:
    """What no other live job of the namespace may use, the job's own name among it."""
    reserved = [NameRange(NameKind.JOB, plan.identity.name), *plan.spare_pods]
    reserved += [NameRange(NameKind.SERVICE, service.name) for service in plan.services]
    for task in plan.tasks:
        reserved += _names_of_task(task)
    if plan.hosts is not None:
        reserved.append(NameRange(NameKind.CONFIG_MAP, plan.hosts.name))
    return merged(reserved)


def names_added(before: JobPlan, after: JobPlan) -> list[NameRange]:
    """What a job that is edited has to reserve beside what it has."""
    return without(reserved_names(after), reserved_names(before))


def _names_of_task(task: TaskPlan) -> list[NameRange]:
    """Names of replicas end in their rank, so the first and the last one tell all of them."""
    if not task.size:
        return []
    kinds = (NameKind.POD, NameKind.SERVICE) if task.own_services else (NameKind.POD,)
    return [numbered(kind, task.pod_name(0), task.pod_name(task.size - 1), task.size) for kind in kinds]
