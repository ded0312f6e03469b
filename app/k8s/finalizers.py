"""Removes one finalizer from an object and keeps all others, even if the object changes at the same time."""

from contextlib import suppress

from app.domain.kubernetes.objects import Metadata
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeInvalid, KubeNotFound
from app.k8s.resources import KubeResource


async def release(
    api: KubeApi, resource: KubeResource, metadata: Metadata, finalizer: str, *, request_seconds: float
) -> bool:
    """Remove the finalizer. Returns False if the finalizers differ from `metadata`: read the object again."""
    if finalizer not in metadata.finalizers:
        return True
    # By its index: a merge patch replaces the whole list, and with it a finalizer that another client has just added.
    path = f"/metadata/finalizers/{metadata.finalizers.index(finalizer)}"
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": metadata.uid},
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]
    with suppress(KubeNotFound):
        try:
            await api.json_patch(resource, metadata.name, metadata.namespace, patch=patch, timeout=request_seconds)
        except KubeInvalid:
            return False
    return True


async def delete_and_release(
    api: KubeApi, resource: KubeResource, metadata: Metadata, finalizer: str, *, request_seconds: float
) -> None:
    """Delete the object with this uid, and remove the finalizer from it. An object that is gone is no error."""
    with suppress(KubeNotFound, KubeConflict):
        await api.delete(resource, metadata.name, metadata.namespace, uid=metadata.uid, timeout=request_seconds)
    # False means that another client has changed the finalizers meanwhile: read them again.
    while not await release(api, resource, metadata, finalizer, request_seconds=request_seconds):
        try:
            found = await api.get(resource, metadata.name, metadata.namespace, codec=OBJECT, timeout=request_seconds)
        except KubeNotFound:
            return
        if found.metadata.uid != metadata.uid:
            return
        metadata = found.metadata
