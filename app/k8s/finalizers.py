"""Takes one finalizer off an object and leaves all others, whatever else changes on it meanwhile."""

from contextlib import suppress

from app.domain.objects import Metadata
from app.k8s.api import KubeApi
from app.k8s.errors import KubeInvalid, KubeNotFound
from app.k8s.resources import KubeResource


async def release(
    api: KubeApi, resource: KubeResource, metadata: Metadata, finalizer: str, *, request_seconds: float
) -> bool:
    """False when the object's finalizers are no longer those of `metadata`: read it again. Gone is released."""
    if finalizer not in metadata.finalizers:
        return True
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
