"""Serves Kueue's visibility API, which a real cluster has Kueue itself serve."""

from devcluster.controllers.kueue.visibility import GROUP_VERSION, KIND, pending_summary
from devcluster.errors import not_found
from devcluster.formats.objects import Object
from devcluster.registry.operations import ObjectAddress
from devcluster.registry.store import ObjectStore
from devcluster.resources import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS
from devcluster.server.addressing import RequestInfo

SUBRESOURCE = "pendingworkloads"
RESOURCES: list[Object] = [
    {
        "name": f"{CLUSTER_QUEUES.plural}/{SUBRESOURCE}",
        "singularName": "",
        "namespaced": False,
        "kind": KIND,
        "verbs": ["get"],
    }
]
"""The resources of its group in the discovery document."""
_PREFIX = f"/apis/{GROUP_VERSION}/{CLUSTER_QUEUES.plural}/"


def find(method: str, path: str) -> RequestInfo | None:
    """Return the meaning of a request to this API; None for any other request."""
    name, _, rest = path.removeprefix(_PREFIX).partition("/")
    if method != "GET" or not path.startswith(_PREFIX) or rest != SUBRESOURCE:
        return None
    return RequestInfo("get", ObjectAddress(CLUSTER_QUEUES, "", name, SUBRESOURCE))


def summary(store: ObjectStore, address: ObjectAddress) -> Object:
    """Return the Workloads that wait in a ClusterQueue.

    Raises:
        StatusError: there is no such ClusterQueue (404).
    """
    if store.get(CLUSTER_QUEUES, "", address.name) is None:
        raise not_found("clusterqueue", address.name, "visibility.kueue.x-k8s.io")
    local_queues = {(queue.namespace, queue.name): queue.object for queue in store.iterate(LOCAL_QUEUES)}
    return pending_summary(address.name, (record.object for record in store.iterate(WORKLOADS)), local_queues)
