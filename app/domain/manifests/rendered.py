"""Renders whole plans for dry runs and for the manifests of a job, and computes their sizes and reserved names."""

from collections.abc import Iterator

import msgspec

from app.domain.manifests.config import anchor_manifest, hosts_manifest
from app.domain.manifests.gangs import group_manifest
from app.domain.manifests.workload import pod_manifest, service_manifest
from app.domain.plan import JobPlan, Manifest, ReplicaPlan, TaskPlan
from app.domain.reservations.name_ranges import NameKind, NameRange, merge_ranges, number_range, without


def objects_of(
    plan: JobPlan, anchor_uid: str | None = None, *, start: int = 0, task: str | None = None
) -> Iterator[Manifest]:
    """Yield the objects of first attempts in the order of creation. Each is rendered when the iterator reaches it.

    The first `start` objects are skipped. With `task`, only the objects of its replicas are yielded. Without the uid of
    the anchor (a dry run), the objects have no owner.
    """
    if task is None:
        shared = _shared_objects(plan, anchor_uid)
        yield from shared[start:]
        start = max(start - len(shared), 0)
    for planned in plan.tasks:
        if task not in (None, planned.name):
            continue
        each = 2 if planned.own_services else 1
        # The objects before `start` are counted and not rendered, so a late page costs no more than the first.
        first, left_out = divmod(start, each)
        for rank in range(first, planned.size):
            yield from _objects_of_replica(plan, planned.render(rank), anchor_uid)[left_out:]
            left_out = 0
        start = max(start - planned.size * each, 0)


def count_objects(plan: JobPlan) -> int:
    """Return the number of objects that `objects_of` yields for the whole plan."""
    return len(_shared_objects(plan, None)) + sum(task.size * (2 if task.own_services else 1) for task in plan.tasks)


def sample_objects(plan: JobPlan, most: int) -> Iterator[Manifest]:
    """Yield the shared objects and those of the first replicas of every task, about `most` in all.

    Every task with replicas has at least one replica among them.
    """
    shared = _shared_objects(plan, None)
    yield from shared
    tasks = [task for task in plan.tasks if task.size]
    left = max(most - len(shared), 0)
    for index, task in enumerate(tasks):
        each = 2 if task.own_services else 1
        # Each task gets an equal share of what the tasks before it have left.
        shown = min(max(left // (len(tasks) - index) // each, 1), task.size)
        for rank in range(shown):
            yield from _objects_of_replica(plan, task.render(rank), None)
        left = max(left - shown * each, 0)


def _objects_of_replica(plan: JobPlan, replica: ReplicaPlan, anchor_uid: str | None) -> list[Manifest]:
    """Return the Service of a replica, if it has one, and the pod of its first attempt."""
    service = [] if replica.service is None else [service_manifest(plan, replica.service, anchor_uid)]
    return [*service, _first_pod(plan, replica, anchor_uid)]


def _first_pod(plan: JobPlan, replica: ReplicaPlan, anchor_uid: str | None) -> Manifest:
    """Return the pod of the first attempt of a replica."""
    in_gang = plan.gang is not None and replica.key in plan.gang.members
    return pod_manifest(plan, replica, 1, anchor_uid, in_gang=in_gang)


def _shared_objects(plan: JobPlan, anchor_uid: str | None) -> list[Manifest]:
    """Return the objects that all replicas share."""
    objects = [anchor_manifest(plan)]
    objects += [service_manifest(plan, service, anchor_uid) for service in plan.services]
    group = group_manifest(plan, anchor_uid)
    if group is not None:
        objects.append(group)
    if plan.hosts is not None:
        objects.append(hosts_manifest(plan, plan.hosts, anchor_uid))
    return objects


def pod_bytes(plan: JobPlan) -> dict[str, int]:
    """Return the size in bytes of the largest pod of each task, that of the last rank, which has the most digits."""
    # As long as a real uid, so that the size is that of the created pod.
    no_uid = "00000000-0000-0000-0000-000000000000"
    return {
        task.name: len(msgspec.json.encode(_first_pod(plan, task.render(task.size - 1), no_uid)))
        for task in plan.tasks
        if task.size
    }


def reserved_names(plan: JobPlan) -> list[NameRange]:
    """Return the names that no other live job of the namespace may use, including the name of the job."""
    reserved = [NameRange(NameKind.JOB, plan.identity.name), *plan.spare_pods]
    reserved += [NameRange(NameKind.SERVICE, service.name) for service in plan.services]
    for task in plan.tasks:
        reserved += _names_of_task(task)
    if plan.hosts is not None:
        reserved.append(NameRange(NameKind.CONFIG_MAP, plan.hosts.name))
    return merge_ranges(reserved)


def names_added(before: JobPlan, after: JobPlan) -> list[NameRange]:
    """Return the names that an edited job must reserve in addition."""
    return without(reserved_names(after), reserved_names(before))


def _names_of_task(task: TaskPlan) -> list[NameRange]:
    """Return the names of the replicas of a task.

    They end in the rank, so the first and the last name determine the range.
    """
    if not task.size:
        return []
    kinds = (NameKind.POD, NameKind.SERVICE) if task.own_services else (NameKind.POD,)
    return [number_range(kind, task.pod_name(0), task.pod_name(task.size - 1), task.size) for kind in kinds]
