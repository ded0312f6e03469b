"""Removes one finalizer from an object and keeps all others, even if the object changes at the same time."""

from contextlib import suppress

from app.domain.kubernetes.objects import Metadata
from app.k8s.api import KubeApi
from app.k8s.errors import KubeInvalid, KubeNotFound
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
