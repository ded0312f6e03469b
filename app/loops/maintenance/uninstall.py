"""Removes all objects of an installation from the cluster, including jobgate's finalizers.

Running jobs are killed, and their records in Postgres stay as they are. The caller holds the controller's lease, so
that no controller creates the objects again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeNotFound
from app.k8s.finalizers import release
from app.k8s.resources import CONFIG_MAP, POD, POD_GROUP, SERVICE, KubeResource
from app.loops.cache.uninstall import SetUninstaller
from app.loops.leadership.lease import Leadership


async def uninstall(
    api: KubeApi, leadership: Leadership, installation: str, *, namespaces: Sequence[str], request_seconds: float
) -> Mapping[str, int]:
    """Delete pods, then anchors, then volumes, and count the deleted objects by kind. No `namespaces` means all.

    Raises:
        KubeError: the cluster did not answer; call it again.
        LeaseLost: the lease could not be kept; call it again.
    """
    selector = f"{labels.INSTALLATION}={installation}"
    sets = SetUninstaller(api, leadership, installation, namespaces=namespaces, request_seconds=request_seconds)
    await sets.remove_before_pods()
    deleted: Counter[str] = Counter()
    for resource in (POD, POD_GROUP, SERVICE, CONFIG_MAP):
        for namespace in namespaces or (None,):
            for item in await _listed(api, resource, namespace, selector):
                # A removal can take longer than the lease. Without the lease, a controller may create objects again.
                leadership.guard(request_seconds)
                await _remove(api, resource, item, request_seconds)
                deleted[resource.kind] += 1
    await sets.remove_after_pods()
    return deleted + sets.deleted


async def _listed(api: KubeApi, resource: KubeResource, namespace: str | None, selector: str) -> list[Object]:
    """Return all objects with the label. An API that the cluster does not serve has none."""
    try:
        return await api.list_all(resource, namespace, codec=OBJECT, label_selector=selector)
    except KubeNotFound:
        return []


async def _remove(api: KubeApi, resource: KubeResource, item: Object, seconds: float) -> None:
    metadata = item.metadata
    with suppress(KubeNotFound, KubeConflict):
        await api.delete(resource, metadata.name, metadata.namespace, uid=metadata.uid, timeout=seconds)
    if labels.EVIDENCE_FINALIZER not in metadata.finalizers:
        return
    # False means that another client has changed the finalizers meanwhile: read them again.
    while not await release(api, resource, metadata, labels.EVIDENCE_FINALIZER, request_seconds=seconds):
        try:
            found = await api.get(resource, metadata.name, metadata.namespace, codec=OBJECT, timeout=seconds)
        except KubeNotFound:
            return
        if found.metadata.uid != metadata.uid:
            return
        metadata = found.metadata
