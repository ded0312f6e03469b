"""Reads the capacity of the cluster and the requests on it: all nodes, and all pods that have not ended."""

from collections.abc import Sequence

from app.domain.scaling.inventory import Census, CountedPod
from app.domain.scaling.values import Inventory, ScalableJob
from app.k8s.api import KubeApi
from app.k8s.codec import NODE as NODE_CODEC
from app.k8s.codec import StructCodec
from app.k8s.resources import NODE, POD

PAGE = 1000
_COUNTED = StructCodec(CountedPod)
# Pods that have ended hold no resources, as for the scheduler.
_NOT_OVER = "status.phase!=Succeeded,status.phase!=Failed"


async def read_inventory(api: KubeApi, *, namespaces: tuple[str, ...], jobs: Sequence[ScalableJob]) -> Inventory:
    """Return the inventory for these jobs. Only one page of pods is in memory at a time.

    Raises:
        KubeError: the cluster does not answer, or denies the list of nodes or pods.
    """
    nodes = await api.list_all(NODE, codec=NODE_CODEC)
    label_keys = {key for job in jobs for key in job.selector}
    census = Census(nodes, label_keys=label_keys, namespaces=namespaces)
    for namespace in namespaces or (None,):
        token = ""
        while True:
            page = await api.list_page(
                POD, namespace, codec=_COUNTED, field_selector=_NOT_OVER, limit=PAGE, continue_token=token
            )
            census.count(page.items)
            token = page.continue_token
            if not token:
                break
    return census.inventory(jobs)
