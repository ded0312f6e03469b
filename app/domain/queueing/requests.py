"""Which queue a manifest requests."""

from app.domain.errors import Problems, pointer_to
from app.domain.kubernetes import names
from app.domain.plan import JobPlan, Manifest, QueuePlan
from app.domain.queueing.workload import MOST_POD_SETS, pod_sets

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
DEFAULT_QUEUE = "default"
"""The LocalQueue that jobs of its namespace use if they name none."""


def queue_of(manifest: Manifest) -> QueuePlan | None:
    """Return the queue that the labels of an accepted manifest name; None if they name none."""
    found = manifest["metadata"].get("labels") or {}
    name = found.get(QUEUE_NAME)
    return QueuePlan(name=name, priority_class=priority_class_of(manifest)) if name else None


def priority_class_of(manifest: Manifest) -> str | None:
    """Return the WorkloadPriorityClass that the labels of an accepted manifest name."""
    return (manifest["metadata"].get("labels") or {}).get(PRIORITY_CLASS) or None


def check_queue(plan: JobPlan, *, required: bool) -> None:
    """Check what a new or edited job requests of Kueue.

    Raises:
        InvalidManifest: the job names no queue although one is required, a name is not valid, or Kueue accepts no
            Workload with so many different tasks.
    """
    problems, at = Problems(), pointer_to("/metadata/labels", QUEUE_NAME)
    queue = plan.queue
    if queue is None:
        if required:
            problems.add(at, "QueueRequired", "this installation runs only jobs that name a queue", "a LocalQueue")
        problems.raise_if_any("the job names no queue")
        return
    for name, pointer in ((queue.name, at), (queue.priority_class, pointer_to("/metadata/labels", PRIORITY_CLASS))):
        if name and (wrong := names.dns_subdomain(name)):
            problems.add(pointer, "InvalidName", wrong, "an RFC 1123 subdomain")
    # Without Kueue, the kind's own scheduler has the queue, and no Workload is made.
    count = 0 if queue.of_own_scheduler else len(pod_sets(plan))
    if count > MOST_POD_SETS:
        detail = f"the tasks of the job request {count} different sets of resources and nodes"
        problems.add("/spec", "TooManyPodSets", detail, f"{MOST_POD_SETS} or fewer in a job with a queue")
    problems.raise_if_any("the queue of the job is not valid")
