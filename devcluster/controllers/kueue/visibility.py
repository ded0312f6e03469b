"""Kueue's visibility API: the Workloads that wait in a ClusterQueue, in the order of their admission. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from devcluster.controllers.kueue.queues import is_stopped
from devcluster.controllers.kueue.workloads import is_pending, priority_of, queue_order
from devcluster.formats.objects import Object, meta, spec

GROUP_VERSION = "visibility.kueue.x-k8s.io/v1beta2"
KIND = "PendingWorkloadsSummary"
_MOST = 1000
"""The Workloads of an answer, as with Kueue if the client sets no limit."""


def pending_summary(name: str, workloads: Iterable[Object], local_queues: Mapping[tuple[str, str], Object]) -> Object:
    """Return the pending Workloads of the ClusterQueue with this name. LocalQueues are by namespace and name."""
    waiting = [
        workload
        for workload in workloads
        if is_pending(workload) and _leads_to(name, local_queues.get(_queue_of(workload)))
    ]
    places: Counter[tuple[str, str]] = Counter()
    items = []
    for position, workload in enumerate(sorted(waiting, key=queue_order)[:_MOST]):
        queue = _queue_of(workload)
        items.append(_item(workload, position, places[queue]))
        places[queue] += 1
    return {"kind": KIND, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}


def _queue_of(workload: Object) -> tuple[str, str]:
    return meta(workload)["namespace"], spec(workload).get("queueName", "")


def _leads_to(name: str, local_queue: Object | None) -> bool:
    return local_queue is not None and spec(local_queue)["clusterQueue"] == name and not is_stopped(local_queue)


def _item(workload: Object, position: int, place: int) -> Object:
    kept = ("name", "namespace", "ownerReferences", "creationTimestamp")
    return {
        "metadata": {key: meta(workload)[key] for key in kept if key in meta(workload)},
        "priority": priority_of(workload),
        "localQueueName": spec(workload)["queueName"],
        "positionInClusterQueue": position,
        "positionInLocalQueue": place,
    }
