"""Which queue a manifest requests."""

from collections.abc import Container

from app.domain.errors import Problems, pointer_to
from app.domain.kubernetes import names
from app.domain.plan import GangApi, JobPlan, Manifest, PriorityClassKind, PriorityClassRef, QueuePlan
from app.domain.queueing.priorities import PRIORITY_CLASS
from app.domain.queueing.workload import MOST_POD_SETS, pod_sets

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
DEFAULT_QUEUE = "default"
"""The LocalQueue that jobs of its namespace use if they name none."""


def queue_of(manifest: Manifest) -> QueuePlan | None:
    """Return the queue that the labels of an accepted manifest name; None if they name none."""
    name = (manifest["metadata"].get("labels") or {}).get(QUEUE_NAME)
    return QueuePlan(name=name) if name else None


def requested_queue(plan: JobPlan, local_queues: Container[str]) -> str | None:
    """Return the queue that a job requests; None if it requests none.

    `local_queues` are those of its namespace. A queue of the kind's own scheduler counts only if it is among them, and
    the cluster does not have that scheduler: the manifest names no queue of Kueue, so the job does not wait for one
    that nobody has made.
    """
    queue, gang = plan.queue, plan.gang
    if queue is None or not queue.of_own_scheduler:
        return queue.name if queue is not None else None
    has_scheduler = gang is not None and gang.api is GangApi.TENSORSTACK
    return queue.name if not has_scheduler and queue.name in local_queues else None


def check_queue(plan: JobPlan, *, required: bool) -> None:
    """Check what a new or edited job requests of Kueue.

    Raises:
        InvalidManifest: the job names no queue although one is required, a name is not valid, or Kueue accepts no
            Workload with so many different tasks.
    """
    problems, at = Problems(), pointer_to("/metadata/labels", QUEUE_NAME)
    queue, priority = plan.queue, plan.priority
    if queue is None:
        if required:
            problems.add(at, "QueueRequired", "this installation runs only jobs that name a queue", "a LocalQueue")
        problems.raise_if_any("the job names no queue")
        return
    requested = [(queue.name, at)]
    if isinstance(priority, PriorityClassRef) and priority.kind is PriorityClassKind.WORKLOAD:
        requested.append((priority.name, pointer_to("/metadata/labels", PRIORITY_CLASS)))
    for name, pointer in requested:
        if wrong := names.dns_subdomain(name):
            problems.add(pointer, "InvalidName", wrong, "an RFC 1123 subdomain")
    problems.raise_if_any("the queue of the job is not valid")
    # Without Kueue, the kind's own scheduler has the queue, and no Workload is made.
    if not queue.of_own_scheduler:
        check_pod_sets(len(pod_sets(plan)), MOST_POD_SETS)


def check_pod_sets(count: int, most: int) -> None:
    """Check that Kueue accepts the Workload of a job with so many pod sets.

    Raises:
        InvalidManifest: it has more than `most`.
    """
    problems = Problems()
    if count > most:
        detail = f"the tasks of the job request {count} different sets of resources and nodes"
        problems.add("/spec", "TooManyPodSets", detail, f"{most} or fewer in a job with a queue")
    problems.raise_if_any("the queue of the job is not valid")
